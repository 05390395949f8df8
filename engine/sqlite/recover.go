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
//     former run met it and left a mark (keepMark).
//  2. The file and its log are only read from now on: what was opened on them is
//     closed while the recovery reads them, so that SQLite moves nothing.
//  3. A new file is made beside it (forebay.db.recovering), and all rows are copied
//     that can be read. The keys of a table are listed from both its ends up to
//     where it is damaged; between, the keys of blocks are known from their dedup
//     records. Then each row is read by its key, so that damage in one costs that
//     one only. When this fails, or the process dies, the next start begins anew.
//  4. The new file is synced and renamed (forebay.db.recovered). From here on it
//     counts: whoever opens finds it, and takeRecovered puts it in the place of the
//     damaged one, which is kept, however often that is cut short.
//  5. What was lost is logged, and told by Engine.Recovery.
//  6. Blocks that can be read but whose records fail their checksums are found when
//     they are loaded; see putAside.

const (
	recovering = ".recovering"
	recovered  = ".recovered"
)

// recoverFile saves what can be read of a damaged database into a new one, to be
// found by takeRecovered. It calls closeOld once it holds the damaged one open.
func recoverFile(path string, maxBytes int64, closeOld func()) (rec Recovery, err error) {
	fresh := path + recovering
	if err := removeDatabase(fresh); err != nil {
		return rec, err
	}
	defer func() {
		if err != nil { // it may be the disk that is full
			err = errors.Join(err, removeDatabase(fresh))
		}
	}()
	old, oldErr := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if oldErr == nil {
		defer old.Close()
		_, _ = pragmaInt(old, "schema_version") // takes its lock; what is damaged shows when it is copied
	}
	closeOld()
	conn, err := openFile(fresh, maxBytes)
	if err != nil {
		return rec, err
	}
	if oldErr != nil {
		rec.Lost = []string{fmt.Sprintf("everything: %v", oldErr)}
	} else {
		c := copier{from: db{old}, to: db{conn}, rec: &rec}
		err = c.copy()
	}
	if err = errors.Join(err, conn.Close()); err != nil { // the close moves the log into the file
		return rec, err
	}
	if err := syncFile(fresh); err != nil {
		return rec, err
	}
	if err := os.Rename(fresh, path+recovered); err != nil {
		return rec, folderError(err)
	}
	return rec, syncFolder(path)
}

func removeDatabase(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return folderError(err)
		}
	}
	return nil
}

// syncFile makes a closed database durable. One that still has a log is not whole.
func syncFile(path string) error {
	if leftLog(path) {
		return forebay.Errorf(forebay.CodeUnavailable, "sqlite: recover", "the log of the new file could not be moved into it")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return folderError(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return folderError(err)
	}
	return nil
}

// takeRecovered puts a recovered file in the place of the damaged one, if there is
// one, and tells where that is kept. The log goes with it: the new file must not
// meet it. The names depend on nothing but the recovered file, so that a start that
// was cut short here is finished by the next.
func takeRecovered(path string) (kept string, err error) {
	info, err := os.Stat(path + recovered)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", folderError(err)
	}
	kept = path + ".damaged-" + info.ModTime().UTC().Format("20060102T150405.000")
	for _, move := range [][2]string{{path, kept}, {path + "-wal", kept + "-wal"}} {
		if err := os.Rename(move[0], move[1]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", folderError(err)
		}
	}
	if err := os.Remove(path + "-shm"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", folderError(err)
	}
	if err := syncFolder(path); err != nil {
		return "", err
	}
	if err := os.Rename(path+recovered, path); err != nil {
		return "", folderError(err)
	}
	return kept, syncFolder(path)
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
		{"tenant", []string{"id"}, []string{"queue", "name"}},
		{"grp", []string{"queue", "hash"}, []string{"tenant", "last"}},
		{"dedup", []string{"seq"}, []string{"lane", "at", "ids"}},
		{"block", []string{"key"}, []string{"n", "sent_at", "bytes", "jobs", "data"}},
		{"log", []string{"key"}, []string{"lane", "n", "sent_at", "bytes", "data"}},
		{"log_slice", []string{"key"}, []string{"last", "rows", "n", "bytes", "since", "until"}},
		{"log_gone", []string{"queue"}, []string{"gone"}},
		{"part", []string{"key"}, []string{"settled"}},
		{"again", []string{"key", "idx"}, []string{"queue", "due", "ord", "sent_at", "attempts", "deliveries", "grp", "lim", "sum", "started", "failures"}},
		{"lease", []string{"id"}, []string{"items", "at"}},
		{"dead", []string{"seq"}, []string{"queue", "key", "id", "code", "sent_at", "died_at", "attempts", "deliveries", "started", "until", "keep", "cause", "failures", "progress", "body"}},
		{"finished", []string{"seq"}, []string{"queue", "at", "ord", "until", "last", "states", "data"}},
		{"ledger", []string{"queue"}, []string{"ord", "completed", "cancelled", "expired"}},
		{"stop", []string{"key", "idx"}, []string{"at", "reason"}},
		{"history", []string{"seq"}, []string{"n", "at", "bytes", "jobs", "data"}},
		{"history_state", []string{"id"}, []string{"epoch", "gone", "n", "bytes"}},
		{"doc", []string{"rev"}, []string{"collection", "key", "expires", "value"}},
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
		if row != nil && !rowWhole(t, row) {
			lost++
			continue
		}
		if row == nil {
			continue // a block that dedup remembers, long settled
		}
		if t.name == "block" && !c.withData(row) {
			lost++
			continue
		}
		if t.name == "block" {
			row[1] = max(recordCount(row[5].([]byte)), row[1].(int64))
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

// rowWhole tells whether the checksum of a row is right, if it has one.
func rowWhole(t table, row []any) bool {
	switch t.name {
	case "part", "lease":
		key, isKey := row[0].(int64)
		value, isValue := row[1].([]byte)
		_, ok := unseal(key, value)
		if !ok && t.name == "lease" {
			_, ok = unseal(^key, value) // a kept one
		}
		return isKey && isValue && ok
	case "again":
		var n [10]int64
		for i := range n {
			n[i], _ = row[i].(int64)
		}
		return row[10] == againSum(n)
	}
	return true
}

// recordCount is how many records a block's data has, by the last that is whole.
func recordCount(data []byte) (n int64) {
	recs, _ := records(data, blockMessages)
	for i, r := range recs {
		if r[1] > 0 {
			n = int64(i) + 1
		}
	}
	return n
}

// note remembers what helps with the tables to come.
func (c *copier) note(t table, row []any) {
	switch t.name {
	case "dedup":
		seq, lane := row[0].(int64), row[1].(int64)
		c.blocks = append(c.blocks, blockKey(lane, seq))
		c.top = max(c.top, seq)
	case "block", "log":
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
		case sqlite.TypeNull:
			row[i] = nil
		default:
			row[i] = columnBytes(s, i)
		}
	}
	return row
}

// mend makes up for what the new file needs and the old one has lost: names of
// queues that blocks and dead letters belong to, and seqs that were never used. The
// mark of damage has done its work.
func (c *copier) mend() error {
	err := c.to.exec("DELETE FROM meta WHERE name = 'damaged'")
	if err == nil {
		err = c.dropSettled()
	}
	if err == nil {
		err = c.mendLedger()
	}
	if err != nil {
		return err
	}
	err = c.to.exec(`INSERT INTO queue (id, name) SELECT id, 'recovered-' || id FROM (
		SELECT (key >> 40) / 10 AS id FROM block UNION SELECT key >> 40 FROM log UNION SELECT queue FROM dead UNION SELECT queue FROM finished UNION SELECT queue FROM tenant)
		WHERE id NOT IN (SELECT id FROM queue) AND id NOT IN (SELECT id FROM tenant)`)
	if err != nil {
		return err
	}
	// Signatures are made anew.
	if err := c.to.exec("INSERT OR IGNORE INTO fresh (seq, lane) SELECT key & ?, key >> ? FROM block WHERE jobs > 0", int64(seqMask), int64(seqBits)); err != nil {
		return err
	}
	return c.to.exec("INSERT INTO meta (name, value) VALUES ('seq', ?1) ON CONFLICT DO UPDATE SET value = max(value, ?1)", c.top+seqsAhead)
}

// dropSettled drops the places in again of messages that are settled, or lost.
func (c *copier) dropSettled() error {
	if err := c.to.exec("DELETE FROM again WHERE key NOT IN (SELECT key FROM block)"); err != nil {
		return err
	}
	var settled [][2]int64
	err := c.to.each("SELECT key, idx, settled FROM again JOIN part USING (key)", func(s *sqlite.Stmt) error {
		key, idx := s.ColumnInt64(0), s.ColumnInt64(1)
		marks, err := marksOf(key, columnBytes(s, 2))
		if err != nil {
			return err
		}
		if marks.has(int(idx) & (blockMessages - 1)) {
			settled = append(settled, [2]int64{key, idx})
		}
		return nil
	})
	for _, at := range settled {
		err = errors.Join(err, c.to.exec("DELETE FROM again WHERE key = ? AND idx = ?", at[0], at[1]))
	}
	return err
}

// keepMark makes the next start recover the file, if damage was met.
func (l *loop) keepMark() {
	if l.damaged && !l.marked {
		// If not even this can be written, the next start meets the damage by itself or not at all.
		l.marked = l.db.exec("INSERT INTO meta (name, value) VALUES ('damaged', 1) ON CONFLICT DO NOTHING") == nil
	}
}

// isMarked finds the mark of keepMark.
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
