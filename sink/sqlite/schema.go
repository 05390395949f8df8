package sqlite

import (
	"fmt"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/sink"
)

// applicationID marks the file as one of events ("FBEV"), as against one that
// another program has made.
const applicationID = 0x46424556

// migrations lead from one user_version to the next: the first makes version 1.
// They are never changed, only added to.
var migrations = []string{`
CREATE TABLE events (
	event_id    TEXT NOT NULL PRIMARY KEY,
	event_type  TEXT NOT NULL,
	user_id     TEXT,
	payload     TEXT NOT NULL,
	received_at TEXT NOT NULL,
	occurred_at TEXT,
	sent_at     TEXT,
	source      TEXT,
	original_at TEXT
) STRICT;
CREATE INDEX events_received_at ON events (received_at);`}

// openWriter opens the file for writing and brings its table up to date. It looks
// before it touches: journal mode and marks are set once the file is known.
func openWriter(path string) (*sqlite.Conn, error) {
	if err := writable(path); err != nil {
		return nil, err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	if err := prepare(conn, path); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func prepare(conn *sqlite.Conn, path string) error {
	version, err := pragma(conn, "user_version")
	if err != nil {
		return err
	}
	id, err := pragma(conn, "application_id")
	if err != nil {
		return err
	}
	tables, err := number(conn, "SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return err
	}
	switch {
	case id != applicationID && tables > 0:
		return &forebay.Error{Code: forebay.CodeInvalid, Op: "sqlite: open",
			Text: fmt.Sprintf("%s is a database of another program", path), Hint: "name another file"}
	case int(version) > len(migrations):
		return forebay.Errorf(forebay.CodeTooNew, "sqlite: open",
			"%s has version %d, this program knows %d", path, version, len(migrations))
	}
	// The cache spares reads of the index, and a log of 16 MiB spares checkpoints.
	settings := fmt.Sprintf(`PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA cache_size = -16384;
		PRAGMA wal_autocheckpoint = 4000; PRAGMA application_id = %d;`, applicationID)
	for _, sql := range strings.Split(settings, ";") {
		if strings.TrimSpace(sql) == "" {
			continue
		}
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			return err
		}
	}
	for ; int(version) < len(migrations); version++ {
		sql := migrations[version] + fmt.Sprintf("PRAGMA user_version = %d;", version+1)
		if err := sqlitex.ExecuteScript(conn, sql, nil); err != nil {
			return err
		}
	}
	return checkColumns(conn, path)
}

// checkColumns finds a table that was changed since. More columns are fine as
// long as rows can be written without them.
func checkColumns(conn *sqlite.Conn, path string) error {
	found := map[string]bool{}
	needed := map[string]bool{}
	err := sqlitex.ExecuteTransient(conn, `SELECT name, "notnull" AND dflt_value IS NULL FROM pragma_table_info('events')`,
		&sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
			found[row.ColumnText(0)] = true
			needed[row.ColumnText(0)] = row.ColumnBool(1)
			return nil
		}})
	if err != nil {
		return err
	}
	var wrong []string
	for _, name := range sink.Columns() {
		if !found[name] {
			wrong = append(wrong, name+" is missing")
		}
		delete(needed, name)
	}
	for name, yes := range needed {
		if yes {
			wrong = append(wrong, name+" is NOT NULL and has no default")
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &forebay.Error{Code: forebay.CodeInvalid, Op: "sqlite: open",
		Text: fmt.Sprintf("the table events of %s was changed: %s", path, strings.Join(wrong, "; ")),
		Hint: "change it back, or name another file"}
}

func pragma(conn *sqlite.Conn, name string) (int64, error) { return number(conn, "PRAGMA "+name) }

func number(conn *sqlite.Conn, sql string) (n int64, err error) {
	err = sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
		n = row.ColumnInt64(0)
		return nil
	}})
	return n, err
}
