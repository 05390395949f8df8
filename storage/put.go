package storage

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gocloud.dev/blob"

	"github.com/forebayhq/forebay"
)

// Put stores what it reads under a name, in place of what was there. Most bounds
// its size; zero is the store's own bound. An object that is larger is not stored,
// and the error has the code too_large.
func (s *Store) Put(ctx context.Context, name, contentType string, r io.Reader, most int64) (Object, error) {
	if err := CheckName(name); err != nil {
		return Object{}, err
	}
	if most <= 0 || most > s.cfg.MaxPut {
		most = s.cfg.MaxPut
	}
	// A writer whose context has ended when it is closed discards what it got.
	writing, discard := context.WithCancel(ctx)
	defer discard()
	w, err := s.bucket.NewWriter(writing, name, &blob.WriterOptions{ContentType: contentType})
	if err != nil {
		return Object{}, failed("put", name, err)
	}
	size, err := io.Copy(w, io.LimitReader(r, most+1))
	if err == nil && size > most {
		err = forebay.Errorf(forebay.CodeTooLarge, "storage: put", "%s has more than %d bytes, the most that is allowed", name, most)
	}
	if err != nil {
		discard()
		w.Close() // its error says that it was discarded
		var ours *forebay.Error
		if errors.As(err, &ours) {
			return Object{}, err
		}
		return Object{}, failed("put", name, err)
	}
	if err := w.Close(); err != nil {
		return Object{}, failed("put", name, err)
	}
	if err := s.flush(name); err != nil {
		return Object{}, failed("put", name, err)
	}
	return Object{Name: name, Size: size, ContentType: contentType}, nil
}

// flush makes a file survive a loss of power: the driver renames it into place, but
// does not flush. Names are such that the driver uses them as paths as they are.
func (s *Store) flush(name string) error {
	if s.folder == "" {
		return nil
	}
	p := filepath.Join(s.folder, filepath.FromSlash(name))
	for _, file := range []string{p, p + ".attrs"} {
		if err := syncPath(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for dir := filepath.Dir(p); strings.HasPrefix(dir, s.folder); dir = filepath.Dir(dir) {
		if err := syncPath(dir); err != nil {
			return err
		}
	}
	return nil
}

func syncPath(p string) error {
	f, err := os.Open(p)
	if err != nil {
		return err
	}
	// Some file systems cannot flush a folder, and say so; they flush it with the file.
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

func full(err error) bool { return errors.Is(err, syscall.ENOSPC) }
