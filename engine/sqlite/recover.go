package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// Recovery tells what the opening of a damaged file saved and lost.
type Recovery struct {
	Copy  string   // where the damaged file was kept; empty: nothing was damaged
	Saved int64    // rows that were read and are in use again
	Lost  []string // what could not be read, a line for each table
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

// The recovery of a damaged file, its life story:
//
//  1. Opening, or building the state in memory, meets damage (CodeDamaged), or a
//     former run met it and left a mark (markDamaged).
//  2. The file and its log are renamed: nothing is ever written to them again.
//  3. A new file is made, and all rows are copied that can be read. The keys of a
//     table are listed from both its ends up to where it is damaged; between, the
//     keys of blocks are known from their dedup records. Then each row is read by
//     its key, so that damage in one costs that one only.
//  4. What was lost is logged, and told by Engine.Recovery.
//  5. Blocks that can be read but whose records fail their checksums are found when
//     they are loaded; see putAside.

// recoverFile saves what can be read of a damaged database into a new one.
func recoverFile(path, suffix string, maxBytes int64) (rec Recovery, err error) {
	rec.Copy = path + ".damaged-" + suffix
	if err := os.Rename(path, rec.Copy); err != nil {
		return rec, folderError(err)
	}
	if err := os.Rename(path+"-wal", rec.Copy+"-wal"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return rec, folderError(err)
	}
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return rec, folderError(err)
	}
	conn, err := openFile(path, maxBytes)
	if err != nil {
		return rec, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	old, err := sqlite.OpenConn(rec.Copy, sqlite.OpenReadOnly)
	if err != nil {
		rec.Lost = []string{fmt.Sprintf("everything: %v", err)}
		return rec, nil
	}
	defer old.Close()
	c := copier{from: db{old}, to: db{conn}, rec: &rec}
	return rec, c.copy()
}

// table is one that is copied: its key, and the other columns.
type table struct {
	name string
	key  []string
	rest []string
}

var errStop = errors.New("stop")

func tables() []table {
	return []table{
		{"meta", []string{"name"}, []string{"value"}},
		{"queue", []string{"id"}, []string{"name", "limits"}},
		{"dedup", []string{"seq"}, []string{"lane", "at", "ids"}},
		{"block", []string{"key"}, []string{"n", "sent_at", "bytes", "data"}},
		{"part", []string{"key"}, []string{"settled"}},
		{"again", []string{"key", "idx"}, []string{"queue", "due", "ord", "sent_at", "attempts", "deliveries", "grp", "lim", "failures"}},
		{"lease", []string{"id"}, []string{"items"}},
		{"dead", []string{"seq"}, []string{"queue", "key", "id", "code", "sent_at", "died_at", "attempts", "deliveries", "cause", "failures", "body"}},
		{"damaged", []string{"seq"}, []string{"at", "queue", "key", "idx", "reason", "data"}},
	}
}

// copier copies what can be read.
type copier struct {
	from, to db
	rec      *Recovery
	blocks   []any // keys of blocks that dedup records know
	top      int64 // the largest seq seen
}

func (c *copier) copy() error {
	if err := c.to.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, t := range tables() {
		if err := c.table(t); err != nil {
			return err
		}
	}
	if err := c.mend(); err != nil {
		return err
	}
	return c.to.exec("COMMIT")
}

func (c *copier) table(t table) error {
	keys, whole := c.keys(t)
	if t.name == "block" && !whole {
		for _, key := range c.blocks {
			keys = append(keys, []any{key})
		}
	}
	columns := strings.Join(append(append([]string{}, t.key...), t.rest...), ", ")
	get := "SELECT " + columns + " FROM " + t.name + " WHERE (" + strings.Join(t.key, ", ") + ") = (?" + strings.Repeat(", ?", len(t.key)-1) + ")"
	put := "INSERT OR IGNORE INTO " + t.name + " (" + columns + ") VALUES (?" + strings.Repeat(", ?", len(t.key)+len(t.rest)-1) + ")"
	lost := 0
	for _, key := range keys {
		var row []any
		err := c.from.each(get, func(s *sqlite.Stmt) error {
			row = values(s)
			return nil
		}, key...)
		if err != nil {
			lost++
			continue
		}
		if row == nil {
			continue // a block that dedup remembers, long settled
		}
		if err := c.to.exec(put, row...); err != nil {
			return err
		}
		c.rec.Saved++
		c.note(t, row)
	}
	switch {
	case !whole:
		c.rec.Lost = append(c.rec.Lost, fmt.Sprintf("%s: damaged in between, an unknown number of rows could not be found; %d found could not be read", t.name, lost))
	case lost > 0:
		c.rec.Lost = append(c.rec.Lost, fmt.Sprintf("%s: %d of %d rows could not be read", t.name, lost, len(keys)))
	}
	return nil
}

// note remembers what helps with the tables to come.
func (c *copier) note(t table, row []any) {
	switch t.name {
	case "dedup":
		seq, lane := row[0].(int64), row[1].(int64)
		c.blocks = append(c.blocks, blockKey(lane, seq))
		c.top = max(c.top, seq)
	case "block":
		c.top = max(c.top, seqOf(row[0].(int64)))
	}
}

// keys lists the keys of a table from both ends. whole: they met.
func (c *copier) keys(t table) (keys [][]any, whole bool) {
	columns := strings.Join(t.key, ", ")
	list := "SELECT " + columns + " FROM " + t.name + " NOT INDEXED ORDER BY " + columns
	err := c.from.each(list, func(s *sqlite.Stmt) error {
		keys = append(keys, values(s))
		return nil
	})
	if err == nil {
		return keys, true
	}
	seen := map[string]bool{}
	for _, key := range keys {
		seen[fmt.Sprint(key)] = true
	}
	err = c.from.each(list[:len(list)-len(columns)]+strings.Join(t.key, " DESC, ")+" DESC", func(s *sqlite.Stmt) error {
		key := values(s)
		if seen[fmt.Sprint(key)] {
			return errStop
		}
		keys = append(keys, key)
		return nil
	})
	return keys, false
}

func values(s *sqlite.Stmt) []any {
	row := make([]any, s.ColumnCount())
	for i := range row {
		switch s.ColumnType(i) {
		case sqlite.TypeInteger:
			row[i] = s.ColumnInt64(i)
		case sqlite.TypeText:
			row[i] = s.ColumnText(i)
		default:
			row[i] = columnBytes(s, i)
		}
	}
	return row
}

// mend makes up for what the new file needs and the old one has lost: names of
// queues that blocks and dead letters belong to, and seqs that were never used.
func (c *copier) mend() error {
	err := c.to.exec(`INSERT INTO queue (id, name) SELECT id, 'recovered-' || id FROM (
		SELECT (key >> 40) / 10 AS id FROM block UNION SELECT queue FROM dead) WHERE id NOT IN (SELECT id FROM queue)`)
	if err != nil {
		return err
	}
	return c.to.exec("INSERT INTO meta (name, value) VALUES ('seq', ?1) ON CONFLICT DO UPDATE SET value = max(value, ?1)", c.top+seqsAhead)
}

// markDamaged makes the next start recover the file.
func (l *loop) markDamaged() {
	// If not even this can be written, the next start meets the damage by itself or not at all.
	_ = l.db.exec("INSERT INTO meta (name, value) VALUES ('damaged', 1) ON CONFLICT DO NOTHING")
}

// isMarked finds the mark of markDamaged.
func (l *loop) isMarked(*tx) error {
	n, err := l.db.int("SELECT 1 FROM meta WHERE name = 'damaged'")
	if err == nil && n > 0 {
		err = forebay.Errorf(forebay.CodeDamaged, "sqlite: open", "an earlier run met damaged data")
	}
	return err
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
