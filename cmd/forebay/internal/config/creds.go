package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// readCreds reads secrets that a supervisor has put into a folder, a file for each. A file
// that is named as a setting is that setting; what has another name is for somebody else.
func (s *Settings) readCreds(dir string) Problems {
	if dir == "" {
		return nil
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return Problems{{At: Source{Name: dir}, Text: err.Error()}}
	}
	var problems Problems
	for _, f := range files {
		problems = append(problems, s.readCred(filepath.Join(dir, f.Name()), f)...)
	}
	return problems
}

func (s *Settings) readCred(path string, f fs.DirEntry) Problems {
	group, _, dotted := strings.Cut(f.Name(), ".")
	if !dotted || f.IsDir() || !s.knows(group) {
		return nil
	}
	at := Source{Name: path}
	one, text := s.find(f.Name())
	if one == nil {
		return Problems{{at, f.Name(), text}}
	}
	info, err := f.Info()
	if err == nil && info.Size() > maxFile {
		err = fmt.Errorf("is larger than %d bytes", maxFile)
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return Problems{{at, one.key, err.Error()}}
	}
	return one.take(strings.TrimRight(string(b), "\r\n"), at)
}
