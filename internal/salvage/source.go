package salvage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const (
	scratch    = ".scratch"
	headerSize = 100
	magic      = "SQLite format 3\x00"
)

// source gives a connection to read the damaged file with; nil: nothing of it can
// be read. Where the first page is what keeps SQLite from reading the others, a
// copy is read in which it is mended: with the true number of pages, with the
// header of the new file, or with all of the new file's first page, since the
// tables of a file that was made in the same way begin on the same pages.
func source(path, fresh string, h *hold, to *sqlite.Conn) (from *sqlite.Conn, done func(), err error) {
	done = func() {}
	want, err := number(to, "PRAGMA application_id")
	if err != nil {
		return nil, done, err
	}
	switch {
	case whole(h.conn, to):
		return h.conn, done, nil
	case foreign(h.conn, want): // not a row of it is ours
		return nil, done, nil
	}
	model, err := head(fresh)
	if err != nil {
		return nil, done, err
	}
	size := int64(binary.BigEndian.Uint16(model[16:]))
	own, err := head(path)
	if err != nil {
		return nil, done, err
	}
	pages := [][]byte{own[:headerSize], model[:headerSize], model[:size]}
	if !bytes.HasPrefix(own, []byte(magic)) {
		pages = pages[1:]
	}
	for _, page := range pages {
		from, done, err = mended(path, page)
		if err != nil || whole(from, to) {
			return from, done, err
		}
		done()
	}
	if readable(h.conn) {
		return h.conn, func() {}, nil
	}
	return nil, func() {}, nil
}

// head reads the first page, filled up with zeros.
func head(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 1<<16)
	if _, err := io.ReadFull(f, b); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}

// mended opens a copy that begins with page; conn is nil where SQLite refuses it.
func mended(path string, page []byte) (conn *sqlite.Conn, done func(), err error) {
	done = func() {
		if conn != nil {
			_ = conn.Close()
		}
		_ = remove(path + scratch)
	}
	if err = remove(path + scratch); err != nil {
		return nil, done, err
	}
	for _, suffix := range []string{"", "-wal"} {
		if err = copyFile(path+scratch+suffix, path+suffix); err != nil {
			done()
			return nil, func() {}, err
		}
	}
	if err = mend(path+scratch, page); err != nil {
		done()
		return nil, func() {}, err
	}
	conn, err = sqlite.OpenConn(path+scratch, sqlite.OpenReadOnly)
	if err != nil {
		conn = nil
	}
	return conn, done, nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// mend writes the beginning, with the number of pages that are there: SQLite reads
// nothing of a file that is shorter than it says.
func mend(path string, page []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	page = slices.Clone(page)
	size := int64(binary.BigEndian.Uint16(page[16:]))
	if size <= 1 {
		size = 1 << 16
	}
	pages := (info.Size() + size - 1) / size
	binary.BigEndian.PutUint32(page[28:], uint32(pages))
	copy(page[92:96], page[24:28]) // says that the number is valid
	_, err = f.WriteAt(page, 0)
	if err == nil {
		err = f.Truncate(pages * size)
	}
	return err
}

// readable tells whether the list of tables can be read.
func readable(conn *sqlite.Conn) bool {
	if conn == nil {
		return false
	}
	_, err := number(conn, "SELECT count(*) FROM sqlite_schema")
	return err == nil
}

// whole tells whether all tables of the new file are in the old one.
func whole(from, to *sqlite.Conn) bool {
	if !readable(from) {
		return false
	}
	ours, err := objects(to)
	if err != nil {
		return false
	}
	theirs, err := objects(from)
	if err != nil {
		return false
	}
	for _, o := range ours {
		if o.kind == "table" && !has(theirs, o) {
			return false
		}
	}
	return true
}

// foreign tells whether a file that can be read is of another program.
func foreign(conn *sqlite.Conn, want int64) bool {
	if !readable(conn) {
		return false
	}
	id, err := number(conn, "PRAGMA application_id")
	return err == nil && id != want
}

func number(conn *sqlite.Conn, sql string, args ...any) (n int64, err error) {
	err = sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{Args: args, ResultFunc: func(row *sqlite.Stmt) error {
		n = row.ColumnInt64(0)
		return nil
	}})
	return n, err
}
