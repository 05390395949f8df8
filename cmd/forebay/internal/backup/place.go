package backup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/forebayhq/forebay"
)

// target is where a copy is put back, and the work folder on the same disk.
type target struct {
	to     string
	work   string
	inside bool        // the work folder is in the target, which cannot be replaced
	was    fs.FileInfo // the empty folder that is there; nil: none
}

// newTarget makes the work folder. It is beside the target, so that what is put back gets its
// name at once; inside of an empty folder that cannot be replaced, such as a mount point.
func newTarget(to string) (t *target, err error) {
	if real, err := filepath.EvalSymlinks(to); err == nil {
		to = real
	}
	t = &target{to: to}
	if t.was, err = os.Stat(to); errors.Is(err, fs.ErrNotExist) {
		t.was, err = nil, os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err != nil {
		return nil, err
	}
	t.work, err = os.MkdirTemp(filepath.Dir(to), workName)
	if t.was == nil || err == nil && t.replaceable() {
		return t, err
	}
	if err == nil {
		err = os.RemoveAll(t.work)
	} else {
		err = nil // no one may write beside it
	}
	if err == nil {
		t.inside = true
		t.work, err = os.MkdirTemp(to, workName)
	}
	return t, err
}

// replaceable tries whether the empty folder can be moved, before anything is copied.
func (t *target) replaceable() bool {
	aside := filepath.Join(t.work, "target")
	return os.Rename(t.to, aside) == nil && os.Rename(aside, t.to) == nil
}

// place gives what is complete its name, if the target is still empty.
func (t *target) place(dir string) error {
	if t.was == nil {
		return place(dir, t.to)
	}
	if err := t.own(dir); err != nil {
		return err
	}
	if t.inside {
		return t.fill(dir)
	}
	if err := os.Remove(t.to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return refused(forebay.CodeConflict, "%s is no empty folder any more: %w", "name a folder that nobody else works in", t.to, err)
	}
	return place(dir, t.to)
}

// fill moves what is in a folder into the target, and then takes that folder away: as long as
// it is there the target is not whole (Incomplete). What has failed is taken back.
func (t *target) fill(dir string) (err error) {
	there, err := os.ReadDir(t.to)
	if err != nil {
		return err
	}
	if len(there) != 1 || there[0].Name() != filepath.Base(t.work) {
		return refused(forebay.CodeConflict, "%s is not empty any more", "name a folder that nobody else works in", t.to)
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for i, one := range all {
		if err := os.Rename(filepath.Join(dir, one.Name()), filepath.Join(t.to, one.Name())); err != nil {
			for _, done := range all[:i] {
				err = errors.Join(err, os.RemoveAll(filepath.Join(t.to, done.Name())))
			}
			return err
		}
	}
	if err := syncFile(t.to); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil {
		return err
	}
	return syncFile(t.work)
}

// workMark begins the names of work folders, inside of which is one with the files.
const (
	workMark  = ".forebay-restore-"
	workName  = workMark + "*"
	filesName = "data"
)

// Incomplete tells whether a restore into a folder was cut off, and so what is in it is not
// whole. nil: no, or there is no such folder.
func Incomplete(folder string) error {
	all, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // which is for whoever uses it
	}
	for _, one := range all {
		if !strings.HasPrefix(one.Name(), workMark) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(folder, one.Name(), filesName)); err == nil {
			return refused(forebay.CodeDamaged, "%s is not whole: a restore into it was cut off, or runs now",
				"take away what is in it, "+one.Name()+" too, and restore again", folder)
		}
	}
	return err
}

// own gives a folder the mode of the one that was there, and all in it that one's owner,
// where this is allowed.
func (t *target) own(dir string) error {
	if err := os.Chmod(dir, t.was.Mode().Perm()); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := giveTo(path, t.was); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	})
}
