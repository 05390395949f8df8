package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// output is where a copy goes: a folder or an archive. Under its name it is there only
// after finish.
type output interface {
	file(ctx context.Context, name, path string) (n int64, sum string, err error)
	bytes(name string, b []byte) error
	finish() error
	abandon() error
}

func newOutput(to, work string) (output, error) {
	if !isArchive(to) {
		return &folder{to: to, dir: filepath.Join(work, "copy")}, os.Mkdir(filepath.Join(work, "copy"), 0o700)
	}
	f, err := os.OpenFile(filepath.Join(work, "archive"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	a := &archive{to: to, f: f}
	var w io.Writer = f
	if isCompressed(to) {
		if a.zstd, err = zstd.NewWriter(f, zstd.WithEncoderConcurrency(1)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		w = a.zstd
	}
	a.tar = tar.NewWriter(w)
	return a, nil
}

func isArchive(name string) bool {
	return strings.HasSuffix(name, ".tar") || isCompressed(name)
}

func isCompressed(name string) bool { return strings.HasSuffix(name, ".tar.zst") }

// folder is a copy as files beside each other.
type folder struct{ to, dir string }

func (o *folder) file(ctx context.Context, name, path string) (n int64, sum string, err error) {
	src, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer src.Close()
	return writeFile(o.dir, name, reader{ctx, src})
}

func (o *folder) bytes(name string, b []byte) error {
	_, _, err := writeFile(o.dir, name, bytes.NewReader(b))
	return err
}

func (o *folder) finish() error { return place(o.dir, o.to) }

func (o *folder) abandon() error { return nil } // it lies in the work folder

// writeFile writes a file and flushes it.
func writeFile(dir, name string, from io.Reader) (n int64, sum string, err error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	n, err = io.Copy(io.MultiWriter(f, h), from)
	if err == nil {
		err = f.Sync()
	}
	return n, hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}

// place gives a folder or file that is complete its name.
func place(from, to string) error {
	if err := syncFile(from); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFile(filepath.Dir(to))
}

// archive is a copy as one tar file.
type archive struct {
	to   string
	f    *os.File
	zstd *zstd.Encoder // nil: not compressed
	tar  *tar.Writer
}

func (o *archive) file(ctx context.Context, name, path string) (n int64, sum string, err error) {
	src, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return 0, "", err
	}
	if err := o.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime()}); err != nil {
		return 0, "", err
	}
	h := sha256.New()
	n, err = io.CopyN(io.MultiWriter(o.tar, h), reader{ctx, src}, info.Size())
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("it became shorter while it was read; make the copy again")
	}
	return n, hex.EncodeToString(h.Sum(nil)), err
}

func (o *archive) bytes(name string, b []byte) error {
	err := o.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(b))})
	if err == nil {
		_, err = o.tar.Write(b)
	}
	return err
}

func (o *archive) finish() error {
	err := o.tar.Close()
	if o.zstd != nil {
		err = errors.Join(err, o.zstd.Close())
	}
	if err == nil {
		err = o.f.Sync()
	}
	if err = errors.Join(err, o.f.Close()); err != nil {
		return err
	}
	return place(o.f.Name(), o.to)
}

func (o *archive) abandon() error { return o.f.Close() }

// reader ends with its context, so that a large file does not hold up a Ctrl-C.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
