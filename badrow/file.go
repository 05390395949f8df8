package badrow

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
)

const (
	appID         = 0x46424252 // "FBBR"
	schemaVersion = 1
)

// The size column stands before the bytes and in an index, so that counting at the
// start reads neither rows nor bytes. Sequence numbers are never reused.
const schema = `
CREATE TABLE bad (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, key_id TEXT NOT NULL, dialect TEXT NOT NULL,
  item INTEGER NOT NULL, event_id TEXT NOT NULL, code TEXT NOT NULL, pointer TEXT NOT NULL, reason TEXT NOT NULL,
  cut INTEGER NOT NULL, size INTEGER NOT NULL, bytes BLOB NOT NULL
) STRICT;
CREATE INDEX bad_by_code ON bad (code, seq, size);
CREATE INDEX bad_by_key ON bad (key_id, seq);
CREATE INDEX bad_by_event ON bad (event_id, seq) WHERE event_id <> '';
CREATE TABLE gone (why TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA application_id = 0x46424252;
PRAGMA user_version = 1;
`

// file is one SQLite file with a connection for the writer and one for readers.
type file struct {
	path   string
	writer *sqlite.Conn
	reader *sqlite.Conn
	totals totals
}

// totals are what the file holds, kept in memory and changed after each commit.
type totals struct {
	mu    sync.Mutex
	rows  int64
	bytes int64
	codes map[string]int64
	gone  map[Why]int64
}

// openFile opens or makes a file. What is not ours, or cannot be read, is
// CodeDamaged.
func openFile(path string) (f *file, err error) {
	f = &file{path: path}
	defer func() {
		if err != nil {
			f.close()
			f = nil
		}
	}()
	if f.writer, err = connect(path); err != nil {
		return f, classify("badrow: open", path, err)
	}
	if err = f.prepare(); err != nil {
		return f, classify("badrow: open", path, err)
	}
	if f.reader, err = connect(path); err != nil {
		return f, classify("badrow: open", path, err)
	}
	if err = f.count(); err != nil {
		if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultError { // a table or column is not there
			err = forebay.Errorf(forebay.CodeDamaged, "badrow: open", "%s: %w", path, err)
		}
		return f, classify("badrow: open", path, err)
	}
	return f, nil
}

func connect(path string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(5 * time.Second)
	return conn, nil
}

// prepare looks at the version before it changes anything.
func (f *file) prepare() error {
	var app, version, tables int
	read := func(query string, into *int) error {
		return sqlitex.ExecuteTransient(f.writer, query, &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
			*into = st.ColumnInt(0)
			return nil
		}})
	}
	if err := errors.Join(read("PRAGMA application_id", &app), read("PRAGMA user_version", &version), read("SELECT count(*) FROM sqlite_schema", &tables)); err != nil {
		return err
	}
	if app != appID && (app != 0 || tables > 0) {
		return forebay.Errorf(forebay.CodeDamaged, "badrow: open", "%s is not a file of bad rows", f.path)
	}
	if version > schemaVersion {
		e := forebay.Errorf(forebay.CodeTooNew, "badrow: open", "%s has version %d, this program reads up to %d", f.path, version, schemaVersion)
		e.Hint = "start the version of forebay that wrote it, or a later one"
		return e
	}
	// WAL with full synchronisation: a commit is one append and one fsync.
	for _, pragma := range []string{"PRAGMA journal_mode=wal", "PRAGMA synchronous=full", "PRAGMA journal_size_limit=16777216"} {
		if err := sqlitex.ExecuteTransient(f.writer, pragma, nil); err != nil {
			return err
		}
	}
	if version == 0 {
		return sqlitex.ExecuteScript(f.writer, schema, nil)
	}
	return nil
}

// count fills the totals.
func (f *file) count() error {
	f.totals.codes, f.totals.gone = map[string]int64{}, map[Why]int64{}
	err := sqlitex.Execute(f.writer, "SELECT code, count(*), sum(size) FROM bad INDEXED BY bad_by_code GROUP BY code",
		&sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
			n := st.ColumnInt64(1)
			f.totals.codes[st.ColumnText(0)] = n
			f.totals.rows += n
			f.totals.bytes += st.ColumnInt64(2)
			return nil
		}})
	if err != nil {
		return err
	}
	return sqlitex.Execute(f.writer, "SELECT why, n FROM gone", &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		f.totals.gone[Why(st.ColumnText(0))] = st.ColumnInt64(1)
		return nil
	}})
}

func (f *file) close() error {
	var errs []error
	for _, c := range []*sqlite.Conn{f.reader, f.writer} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return classify("badrow: close", f.path, err)
	}
	return nil
}

// change is what one transaction will have changed, once it is committed.
type change struct {
	rows, bytes int64
	codes       map[string]int64
	gone        map[Why]int64
}

func newChange() *change { return &change{codes: map[string]int64{}, gone: map[Why]int64{}} }

func (c *change) add(code string, rows, bytes int64) {
	c.rows += rows
	c.bytes += bytes
	c.codes[code] += rows
}

func (t *totals) apply(c *change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows += c.rows
	t.bytes += c.bytes
	for code, n := range c.codes {
		if t.codes[code] += n; t.codes[code] <= 0 {
			delete(t.codes, code)
		}
	}
	for why, n := range c.gone {
		t.gone[why] += n
	}
}

func (t *totals) stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats{Rows: t.rows, Bytes: t.bytes, ByCode: maps.Clone(t.codes), Gone: maps.Clone(t.gone)}
}

// classify gives an SQLite error its code.
func classify(op, path string, err error) error {
	var e *forebay.Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	code := forebay.CodeUnavailable
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		code = forebay.CodeDamaged
	case sqlite.ResultFull:
		code = forebay.CodeFull
	}
	return forebay.Errorf(code, op, "%s: %w", path, err)
}

// clip cuts a word to what a row keeps, as valid UTF-8.
func clip(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), MaxTextBytes)], "\uFFFD")
}
