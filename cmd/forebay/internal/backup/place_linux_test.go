package backup_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/backup"
)

// An empty folder takes a copy: one of somebody else's, which keeps its owner and its mode, one
// behind a link, and one that cannot be replaced, for it is a mount point or nobody may write beside it.
func TestIntoAnEmptyFolder(t *testing.T) {
	dir, _ := dataFolder(t)
	made := filepath.Join(t.TempDir(), "copy.tar")
	write(t, dir, made)
	root := os.Getuid() == 0
	for name, prepare := range map[string]func(base, back string) error{
		"plain": func(_, back string) error {
			if root {
				return errors.Join(os.Chmod(back, 0o750), os.Chown(back, 65534, 65534))
			}
			return os.Chmod(back, 0o750)
		},
		"link": func(base, back string) error {
			return errors.Join(os.Rename(back, filepath.Join(base, "real")), os.Symlink("real", back))
		},
		"mount": func(base, back string) error {
			if !root { // beside it nobody may write, which is no hindrance for root
				t.Cleanup(func() { os.Chmod(base, 0o700) })
				return os.Chmod(base, 0o500)
			}
			err := syscall.Mount("tmpfs", back, "tmpfs", 0, "mode=0750")
			if errors.Is(err, syscall.EPERM) {
				t.Log("no mount is allowed here")
				return nil
			}
			t.Cleanup(func() { syscall.Unmount(back, 0) })
			return err
		},
	} {
		base := t.TempDir()
		back := filepath.Join(base, "back")
		if err := errors.Join(os.Mkdir(back, 0o700), prepare(base, back)); err != nil {
			t.Fatal(name, err)
		}
		before, err := os.Stat(back)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), made, back, none); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := rows(t, filepath.Join(back, queue)); n != 2 {
			t.Errorf("%s: %d rows, want 2", name, n)
		}
		after, err := os.Stat(back)
		key, kerr := os.Stat(filepath.Join(back, "files", "empty"))
		if err := errors.Join(err, kerr); err != nil {
			t.Fatal(name, err)
		}
		was, is, in := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t), key.Sys().(*syscall.Stat_t)
		if before.Mode() != after.Mode() || was.Uid != is.Uid || was.Uid != in.Uid || was.Dev != is.Dev || key.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v of %d was %v of %d; in it %v of %d", name, after.Mode(), is.Uid, before.Mode(), was.Uid, key.Mode(), in.Uid)
		}
		for _, in := range []string{base, back} {
			if left, err := filepath.Glob(filepath.Join(in, ".forebay-*")); err != nil || len(left) > 0 {
				t.Errorf("%s: left behind: %v, %v", name, left, err)
			}
		}
		if link, err := os.Lstat(back); name == "link" && (err != nil || link.Mode()&os.ModeSymlink == 0) {
			t.Errorf("the link is gone: %v, %v", link, err)
		}
	}
}

// What somebody puts into the folder meanwhile stays, and nothing is put beside it.
func TestIntoAFolderThatIsNotEmptyAnyMore(t *testing.T) {
	dir, _ := dataFolder(t)
	made := filepath.Join(t.TempDir(), "copy.tar")
	write(t, dir, made)
	back := t.TempDir()
	_, err := backup.Restore(t.Context(), made, back, func(string) error {
		return os.WriteFile(filepath.Join(back, "theirs"), nil, 0o600)
	})
	if forebay.CodeOf(err) != forebay.CodeConflict {
		t.Error(err)
	}
	if all, err := os.ReadDir(back); err != nil || len(all) != 1 || all[0].Name() != "theirs" {
		t.Errorf("%v, %v", all, err)
	}
}

// A restore that was killed while it filled a folder has left a part. That is told, and nothing
// is put beside it, until somebody has taken it away.
func TestCutOffInsideOfAFolder(t *testing.T) {
	dir, _ := dataFolder(t)
	made := filepath.Join(t.TempDir(), "copy.tar")
	write(t, dir, made)
	back := t.TempDir()
	work := filepath.Join(back, ".forebay-restore-1")
	err := errors.Join(os.MkdirAll(filepath.Join(work, "data", "files"), 0o700), os.WriteFile(filepath.Join(back, queue), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	_, err = backup.Restore(t.Context(), made, back, none)
	for _, err := range []error{err, backup.Incomplete(back)} {
		if forebay.CodeOf(err) != forebay.CodeDamaged || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("%v", err)
		}
	}
	if err := os.RemoveAll(filepath.Join(work, "data")); err != nil {
		t.Fatal(err)
	}
	if err := backup.Incomplete(back); err != nil { // it was whole: only the work folder had not gone yet
		t.Error(err)
	}
	for _, name := range []string{filepath.Join(back, "none"), made} {
		if err := backup.Incomplete(name); err != nil {
			t.Error(err)
		}
	}
}
