package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"

	"github.com/forebayhq/forebay"
)

// Recovery tells what the opening of a damaged file saved and lost.
type Recovery struct {
	Copy string // where the damaged file was kept; empty: nothing was damaged
	Lost []string
}

// checkHeader looks at the file without opening it as a database, so that one of
// a newer version or another program stays as it is.
func checkHeader(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return folderError(err)
	}
	defer f.Close()
	var b [100]byte
	if _, err := io.ReadFull(f, b[:]); err != nil || !bytes.HasPrefix(b[:], []byte("SQLite format 3\x00")) {
		return nil
	}
	return checkVersion(int64(binary.BigEndian.Uint32(b[60:])), int64(binary.BigEndian.Uint32(b[68:])))
}

func checkVersion(version, application int64) error {
	switch {
	case application == applicationID && version > int64(len(migrations)):
		return &forebay.Error{Code: forebay.CodeTooNew, Op: "sqlite: open",
			Text: "the database was written by a newer version of forebay",
			Hint: "start the newer version, or choose another data folder"}
	case application != applicationID && (application != 0 || version != 0):
		return &forebay.Error{Code: forebay.CodeInvalid, Op: "sqlite: open",
			Text: "the file is a SQLite database of another program",
			Hint: "choose another data folder"}
	}
	return nil
}

// putAside moves the damaged records of a block out of the way, into the table of
// damaged data. They count as settled.
func (l *loop) putAside(b *block) error {
	marks := b.settled
	bad := 0
	for i := range b.n {
		if b.recs[i][1] == 0 && !marks.has(i) {
			marks.set(i)
			bad++
		}
	}
	if bad == 0 {
		l.blocks.cache(b)
		return nil
	}
	t := l.newTx()
	owns := l.db.conn.AutocommitEnabled()
	t.began = !owns
	queue := laneOf(b.key) / levels
	err := t.exec("INSERT INTO damaged (at, queue, key, idx, reason, data) VALUES (?, ?, ?, ?, ?, ?)",
		t.now, queue, b.key, int64(bad), "checksum", b.data)
	if err == nil {
		err = t.writeMarks(b, &marks)
	}
	if err == nil && owns {
		err = t.commit()
	}
	if err != nil {
		if owns {
			t.rollback()
		}
		return err
	}
	l.log.Error("damaged messages were put aside", "queue", l.queueName(b.key), "messages", bad, "block", b.key)
	l.blocks.cache(b)
	l.publishMarks(b, &marks)
	return nil
}
