package badrow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
)

// The life of a damaged file:
//
//  1. A statement at Open, in the writer or in a reader says that the file is damaged.
//  2. The file and its log are renamed to <path>.damaged-<time>; nothing of them is
//     changed from here on.
//  3. A new file is made, and what can be read of the old one is copied: from the
//     oldest row up to the first damage, then from the newest row down to it.
//  4. The log says what happened, Stats names the file, and the call that met the
//     damage goes on with the new file.

// maxStretch bounds what a damaged header can make stretch fill up (sparse).
const maxStretch = 4 << 30

// setAside makes a new file in place of a damaged one that is closed.
func (s *Store) setAside(damage error) (*file, error) {
	aside := s.path + ".damaged-" + s.cfg.Now().UTC().Format("20060102T150405.000000000Z")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(s.path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, forebay.Errorf(forebay.CodeDamaged, "badrow: set aside", "%w, after %v", err, damage)
		}
	}
	f, err := openFile(s.path)
	if err != nil {
		return nil, err
	}
	taken, err := f.salvage(aside)
	if err != nil {
		f.close()
		return nil, err
	}
	s.aside = aside
	s.cfg.Logger.Error("badrow: the file was damaged; it is set aside and a new one begun",
		"file", s.path, "setAside", aside, "rowsTakenOver", taken, "error", damage)
	return f, nil
}

// swap is setAside for a running store. Only the writer calls it.
func (s *Store) swap(damage error) (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.file.close() // its error says once more that it is damaged
	s.file = nil
	f, err := s.setAside(damage)
	if err != nil {
		s.cfg.Logger.Error("badrow: the damaged file cannot be replaced, the next call tries again", "file", s.path, "error", err)
		return nil, err
	}
	s.file = f
	return f, nil
}

// salvage copies what can be read of a damaged file. An error is one of our own
// file; those of the damaged one end the reading.
func (f *file) salvage(aside string) (taken int64, err error) {
	scratch, err := stretch(aside)
	if err != nil {
		return 0, err
	}
	if scratch != "" {
		defer os.Remove(scratch)
		aside = scratch
	}
	// A read-only connection reads the write-ahead log too, and never folds it in.
	old, err := sqlite.OpenConn(aside, sqlite.OpenReadOnly)
	if err != nil {
		return 0, nil
	}
	defer old.Close()
	var last int64
	var mine error
	read := func(order string, want func(seq int64) bool) func(*change) error {
		return func(c *change) error {
			err := sqlitex.ExecuteTransient(old, "SELECT "+columns+" FROM bad ORDER BY seq "+order, &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
				r := scan(st)
				if !want(r.Seq) {
					return errEnough
				}
				if mine = f.insert(c, &r, r.Seq); mine != nil {
					return mine
				}
				taken++
				return nil
			}})
			if mine != nil || err == nil {
				return mine
			}
			return nil
		}
	}
	up := func(seq int64) bool {
		ok := seq > last
		last = max(last, seq)
		return ok
	}
	if err := f.transact(read("ASC", up)); err != nil {
		return 0, err
	}
	floor, next := last, int64(1<<63-1)
	down := func(seq int64) bool {
		ok := seq > floor && seq < next
		next = seq
		return ok
	}
	return taken, f.transact(read("DESC", down))
}

// stretch copies a file that is shorter than its header says, filled up with
// zeros: SQLite would not read a page of it otherwise. It gives the copy's path,
// empty where there was no need for one.
func stretch(path string) (string, error) {
	b, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", forebay.Errorf(forebay.CodeUnavailable, "badrow: salvage", "%w", err)
	}
	defer b.Close()
	var head [32]byte
	if _, err := io.ReadFull(b, head[:]); err != nil {
		return "", nil
	}
	pageSize, pages := int64(binary.BigEndian.Uint16(head[16:])), int64(binary.BigEndian.Uint32(head[28:]))
	fi, err := b.Stat()
	if err != nil || fi.Size() >= pageSize*pages || pageSize*pages > maxStretch {
		return "", nil
	}
	scratch := path + ".scratch"
	out, err := os.OpenFile(scratch, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", forebay.Errorf(forebay.CodeUnavailable, "badrow: salvage", "%w", err)
	}
	_, err = io.Copy(out, io.MultiReader(bytes.NewReader(head[:]), b))
	if err = errors.Join(err, out.Truncate(pageSize*pages), out.Close()); err != nil {
		os.Remove(scratch)
		return "", forebay.Errorf(forebay.CodeUnavailable, "badrow: salvage", "%w", err)
	}
	return scratch, nil
}
