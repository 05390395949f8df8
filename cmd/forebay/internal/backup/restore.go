package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/forebayhq/forebay"
)

// Restore puts a copy into a folder that is not there, or empty. ready is called with the
// folder before it gets its name: what it refuses is not put back. An empty folder keeps its
// owner and its mode; one that cannot be replaced, such as a mount point, is filled instead.
func Restore(ctx context.Context, from, folder string, ready func(dir string) error) (_ *Manifest, err error) {
	to, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if err := mayRestore(to); err != nil {
		return nil, err
	}
	target, err := newTarget(to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(target.work)) }()
	dir := filepath.Join(target.work, filesName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	read := readFolder
	if info, err := os.Stat(from); err != nil {
		return nil, err
	} else if !info.IsDir() {
		read = readArchive
	}
	m, found, err := read(ctx, from, dir)
	if err != nil {
		return nil, err
	}
	if err := match(m, found); err != nil {
		return nil, err
	}
	if err := ready(dir); err != nil {
		return nil, err
	}
	return m, target.place(dir)
}

func mayRestore(to string) error {
	if err := Incomplete(to); err != nil {
		return err
	}
	inside, err := os.ReadDir(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(inside) > 0:
		return refused(forebay.CodeConflict, "%s holds something", "name a folder that is not there, or empty: what is there is never written over", to)
	}
	return nil
}

// match compares what was read with what the copy says it holds.
func match(m *Manifest, found map[string]File) error {
	for _, want := range m.Files {
		got, ok := found[want.Name]
		switch {
		case !ok:
			return damaged("%s is missing in the copy", want.Name)
		case got.Bytes != want.Bytes || got.SHA256 != want.SHA256:
			return damaged("%s is not as it was when the copy was made (%d bytes, then %d; or another checksum)", want.Name, got.Bytes, want.Bytes)
		}
		delete(found, want.Name)
	}
	for name := range found {
		return damaged("%s is in the copy, and %s does not name it", name, manifestFile)
	}
	return nil
}

func readFolder(ctx context.Context, from, dir string) (*Manifest, map[string]File, error) {
	b, err := readSome(filepath.Join(from, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, damaged("%s has no %s: it is no complete copy", from, manifestFile)
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := decodeManifest(b)
	if err != nil {
		return nil, nil, err
	}
	found := map[string]File{}
	for _, f := range m.Files {
		src, err := os.Open(filepath.Join(from, filepath.FromSlash(f.Name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // match tells
		}
		if err != nil {
			return nil, nil, err
		}
		got := File{Name: f.Name}
		got.Bytes, got.SHA256, err = writeFile(dir, f.Name, reader{ctx, src})
		if err = errors.Join(err, src.Close()); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		found[f.Name] = got
	}
	return m, found, nil
}

func readSome(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxManifest))
}

func readArchive(ctx context.Context, from, dir string) (*Manifest, map[string]File, error) {
	f, err := os.Open(from)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var r io.Reader = reader{ctx, f}
	if isCompressed(from) {
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return nil, nil, err
		}
		defer z.Close()
		r = z
	}
	var m *Manifest
	found := map[string]File{}
	for entries := tar.NewReader(r); ; {
		head, err := entries.Next()
		if errors.Is(err, io.EOF) && m != nil {
			return m, found, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, nil, damaged("%s has no %s: it is no complete copy", from, manifestFile)
		}
		if err == nil {
			m, err = readEntry(entries, head, dir, m, found)
		}
		if err != nil {
			return nil, nil, readError(from, err)
		}
	}
}

// readEntry takes one file of an archive. The manifest is the last.
func readEntry(r io.Reader, head *tar.Header, dir string, m *Manifest, found map[string]File) (*Manifest, error) {
	if m != nil {
		return nil, damaged("%s comes after %s", head.Name, manifestFile)
	}
	if head.Name == manifestFile {
		b, err := io.ReadAll(io.LimitReader(r, maxManifest))
		if err != nil {
			return nil, err
		}
		return decodeManifest(b)
	}
	if head.Typeflag != tar.TypeReg || !isName(head.Name) || found[head.Name].Name != "" {
		return nil, damaged("%q cannot be a file of a data folder", head.Name)
	}
	got := File{Name: head.Name}
	var err error
	got.Bytes, got.SHA256, err = writeFile(dir, head.Name, r)
	found[head.Name] = got
	return nil, err
}

// readError tells damage of the archive from troubles of this machine.
func readError(from string, err error) error {
	var p *fs.PathError
	var e *forebay.Error
	if errors.As(err, &p) || errors.As(err, &e) || errors.Is(err, context.Canceled) {
		return err
	}
	return damaged("%s cannot be read: %w", from, err)
}
