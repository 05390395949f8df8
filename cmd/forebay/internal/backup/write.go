package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/forebayhq/forebay"
)

// Config says what to copy.
type Config struct {
	Folder  string // the data folder
	Queue   string // the name of the queue's database in it
	To      string // a folder that is not there, or a file that ends in .tar or .tar.zst
	Program string // its version
	Now     time.Time
}

// Write makes a copy and tells what is in it.
func Write(ctx context.Context, c Config) (_ *Manifest, err error) {
	to, err := filepath.Abs(c.To)
	if err != nil {
		return nil, err
	}
	if err := mayWrite(c, to); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(filepath.Dir(to), ".forebay-backup-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	all, err := list(c.Folder, c.Queue)
	if err != nil {
		return nil, err
	}
	m := &Manifest{Format: Format, Program: c.Program, At: c.Now.UTC()}
	out, err := newOutput(to, work)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if err = ctx.Err(); err == nil {
			err = copyOne(ctx, one, out, work, m)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", one.path, err), out.abandon())
		}
	}
	b, err := m.encode()
	if err == nil {
		err = out.bytes(manifestFile, b)
	}
	if err != nil {
		return nil, errors.Join(err, out.abandon())
	}
	return m, out.finish()
}

// mayWrite refuses places that hold something, and the data folder itself.
func mayWrite(c Config, to string) error {
	folder, err := filepath.Abs(c.Folder)
	if err != nil {
		return err
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return refused(forebay.CodeNotFound, "%s is no data folder", "name that of a server: --data DIR", folder)
	}
	if _, err := os.Stat(filepath.Join(folder, c.Queue)); err != nil {
		return refused(forebay.CodeNotFound, "there is no %s in %s", "name the data folder of a server: --data DIR", c.Queue, folder)
	}
	if rel, err := filepath.Rel(folder, to); err == nil && filepath.IsLocal(rel) {
		return refused(forebay.CodeInvalid, "%s lies in the data folder", "name a place outside of it, best on another disk", to)
	}
	_, err = os.Lstat(to)
	if err == nil {
		return refused(forebay.CodeConflict, "%s is there already", "name a place that is not there; a copy never takes the place of another", to)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// copyOne copies one file and adds it to the manifest. A file that has left meanwhile,
// such as an upload that was cleaned up, is none.
func copyOne(ctx context.Context, one source, out output, work string, m *Manifest) (err error) {
	f := File{Name: one.name}
	path := one.path
	if one.database {
		path = filepath.Join(work, "database")
		if f.SQLite, err = copyDatabase(ctx, one.path, path); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Remove(path)) }()
	}
	f.Bytes, f.SHA256, err = out.file(ctx, one.name, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		m.Files = append(m.Files, f)
	}
	return err
}
