package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/forebayhq/forebay"
)

// lockFile keeps a second process away from the database. The kernel frees it
// when its process ends, however it ends.
type lockFile struct{ f *os.File }

// takeLock locks the file beside the database: forebay.lock for forebay.db.
func takeLock(database string) (*lockFile, error) {
	path := strings.TrimSuffix(database, ".db") + ".lock"
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, folderError(err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		owner, _ := io.ReadAll(io.LimitReader(f, 32))
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &forebay.Error{Code: forebay.CodeInUse, Op: "sqlite: open",
				Text: fmt.Sprintf("%s is in use by process %s", database, strings.TrimSpace(string(owner))),
				Hint: "stop that process, or choose another data folder"}
		}
		return nil, folderError(err)
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(fmt.Sprintln(os.Getpid())), 0)
	}
	if err != nil {
		f.Close()
		return nil, folderError(err)
	}
	return &lockFile{f}, nil
}

func (k *lockFile) free() {
	if k != nil {
		k.f.Close()
	}
}

// folderError tells what is wrong with the data folder.
func folderError(err error) error {
	e := forebay.Errorf(forebay.CodeUnavailable, "sqlite: open", "%w", err)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		e.Code, e.Hint = forebay.CodeFull, "free some space on the disk of the data folder"
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Hint = "make the data folder writable for this user, or choose another"
	case errors.Is(err, os.ErrNotExist):
		e.Hint = "create the data folder, or choose another"
	}
	return e
}
