package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/cmd/forebay/internal/backup"
)

// The files of a data folder.
const (
	queueFile   = "forebay.db"
	eventsFile  = "events.db"
	badFile     = "bad.db"
	keysFile    = "keys.json"
	auditFile   = "audit.jsonl"
	filesFolder = "files"
	secretFile  = "webhook.secret"

	accessKeysFile = "access-keys.json"
)

// makeFolder makes the data folder when it is not there, and finds out whether it
// can be written before anything in it is touched.
func makeFolder(dir string) error {
	if err := backup.Incomplete(dir); forebay.CodeOf(err) == forebay.CodeDamaged {
		return cannotStart(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return folderError(dir, err)
	}
	if err := syncEntry(dir); err != nil {
		return folderError(dir, err)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return folderError(dir, err)
	}
	_, err = probe.Write(make([]byte, 4096)) // a full disk takes the name, not the bytes
	err = errors.Join(err, probe.Close(), os.Remove(probe.Name()))
	if err != nil {
		return folderError(dir, err)
	}
	return nil
}

// syncEntry makes the folder's own name survive power loss: what is stored in a
// folder that is not there any more is lost all the same.
func syncEntry(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(abs))
	if errors.Is(err, fs.ErrPermission) {
		return nil // a folder that somebody else made, in one that is not ours to read
	}
	if err != nil {
		return err
	}
	err = parent.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EROFS) {
		err = nil // a file system that has nothing to sync there
	}
	return errors.Join(err, parent.Close())
}

func folderError(dir string, err error) error {
	text, hint, code := err, "", forebay.CodeUnavailable
	var p *fs.PathError
	if errors.As(err, &p) {
		text = p.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		hint = "name a folder that this user can write: --data DIR"
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		code, hint = forebay.CodeFull, "make room on this disk, or name a folder on another: --data DIR"
	case errors.Is(err, syscall.ENOTDIR):
		hint = "a part of this path is a file; name a folder: --data DIR"
	}
	abs, _ := filepath.Abs(dir)
	e := forebay.Errorf(code, "data folder "+abs, "%w", text)
	e.Hint = hint
	return cannotStart(e)
}
