package sqlite

import (
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// db is the one connection that reads and writes. Only the engine's loop uses it.
type db struct{ conn *sqlite.Conn }

// exec runs a statement that gives no rows. Arguments are int64, string, []byte or nil.
func (d db) exec(sql string, args ...any) error {
	return d.each(sql, nil, args...)
}

// each runs a statement and calls row for each of its rows. The statement is
// reset before it returns: an open one would hold the write-ahead log back.
func (d db) each(sql string, row func(*sqlite.Stmt) error, args ...any) error {
	stmt, err := d.conn.Prepare(sql)
	if err != nil {
		return storeError(err)
	}
	for i, arg := range args {
		switch v := arg.(type) {
		case int64:
			stmt.BindInt64(i+1, v)
		case string:
			stmt.BindText(i+1, v)
		case []byte:
			stmt.BindBytes(i+1, v)
		case nil:
			stmt.BindNull(i + 1)
		default:
			panic(fmt.Sprintf("BUG: argument of type %T", arg))
		}
	}
	for {
		has, err := stmt.Step()
		if err != nil {
			return storeError(err)
		}
		if !has {
			return nil // done: the statement is reset by its next use and holds nothing
		}
		if err := row(stmt); err != nil {
			stmt.Reset()
			return err
		}
	}
}

// int gives the single number that a query selects; none: 0.
func (d db) int(sql string, args ...any) (n int64, err error) {
	err = d.each(sql, func(s *sqlite.Stmt) error {
		n = s.ColumnInt64(0)
		return nil
	}, args...)
	return n, err
}

func columnBytes(s *sqlite.Stmt, col int) []byte {
	b := make([]byte, s.ColumnLen(col))
	s.ColumnBytes(col, b)
	return b
}

func pragmaInt(conn *sqlite.Conn, name string) (n int64, err error) {
	stmt, _, err := conn.PrepareTransient("PRAGMA " + name)
	if err != nil {
		return 0, err
	}
	defer stmt.Finalize()
	if _, err := stmt.Step(); err != nil {
		return 0, err
	}
	return stmt.ColumnInt64(0), nil
}

func pragma(conn *sqlite.Conn, name string, value any) error {
	stmt, _, err := conn.PrepareTransient(fmt.Sprintf("PRAGMA %s = %v", name, value))
	if err != nil {
		return err
	}
	defer stmt.Finalize()
	_, err = stmt.Step()
	return err
}

// storeError gives SQLite's errors a code.
func storeError(err error) error {
	code := forebay.CodeInternal
	hint := ""
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		code, hint = forebay.CodeFull, "free some space on the disk of the data folder"
	case sqlite.ResultIOErr, sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultCantOpen,
		sqlite.ResultReadOnly, sqlite.ResultNoMem, sqlite.ResultPerm, sqlite.ResultInterrupt:
		code, hint = forebay.CodeUnavailable, "look at the disk of the data folder and at its permissions"
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		code, hint = forebay.CodeDamaged, "start again: what can be read is recovered at start"
	}
	e := forebay.Errorf(code, "sqlite: store", "%w", err)
	e.Hint = hint
	return e
}
