package backup

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forebayhq/forebay"
)

// source is a file that is to be copied.
type source struct {
	name     string // with slashes
	path     string
	database bool
}

// belongs tells whether a file is part of what a server keeps. The rest is of a running
// process, or is what a recovery has put aside.
func belongs(name string) bool {
	for _, end := range []string{".lock", "-wal", "-shm", "-journal", ".new", ".tmp", ".recovering"} {
		if strings.HasSuffix(name, end) {
			return false
		}
	}
	return name != "server.json" && !strings.HasPrefix(name, ".probe-") && !strings.Contains(name, ".damaged-")
}

// list finds what is to be copied, in the order in which it is: the queue, the other
// databases, then all else. What the queue says is done is in what is copied after it.
func list(folder, queue string) ([]source, error) {
	var all []source
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != folder {
			return nil // it left while we looked
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		top := !strings.Contains(name, "/") // uploads and results lie deeper, and are what they are
		if top && !belongs(name) {
			return nil
		}
		if !d.Type().IsRegular() {
			return refused(forebay.CodeInvalid, "%s is no ordinary file", "a copy holds files only: take it out of the data folder, or copy what it leads to by other means", path)
		}
		database := false
		if top {
			database, err = isDatabase(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		all = append(all, source{name, path, database})
		return err
	})
	rank := func(s source) int {
		switch {
		case s.name == queue:
			return 0
		case s.database:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b source) int { return cmp.Compare(rank(a), rank(b)) })
	return all, err
}

// isDatabase looks for SQLite's mark.
func isDatabase(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	const mark = "SQLite format 3\x00"
	b := make([]byte, len(mark))
	_, err = io.ReadFull(f, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	return string(b) == mark, err
}
