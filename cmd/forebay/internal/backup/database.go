package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
)

const (
	pagesAtOnce = 2048             // of one step: how soon a copy notices that it is to stop
	patience    = 10 * time.Second // with a database that another process has locked
)

// copyDatabase copies a database as it is at one moment, while others write to it, and
// checks the copy.
func copyDatabase(ctx context.Context, from, to string) (_ *SQLite, err error) {
	src, err := sqlite.OpenConn(from, sqlite.OpenReadOnly)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	src.SetBusyTimeout(patience)
	// A transaction that has read holds its moment; without it the copy would begin anew
	// with each write of the server, and never end under load.
	if err := sqlitex.ExecuteTransient(src, "BEGIN", nil); err != nil {
		return nil, err
	}
	is := &SQLite{}
	if is.Application, err = pragma(src, "application_id"); err != nil {
		return nil, err
	}
	if is.Version, err = pragma(src, "user_version"); err != nil {
		return nil, err
	}
	if err := copyPages(ctx, src, to); err != nil {
		return nil, err
	}
	return is, syncFile(to)
}

func copyPages(ctx context.Context, src *sqlite.Conn, to string) (err error) {
	if err := os.WriteFile(to, nil, 0o600); err != nil { // SQLite would make it readable for others
		return err
	}
	dst, err := sqlite.OpenConn(to, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	b, err := sqlite.NewBackup(dst, "main", src, "main")
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		if err = ctx.Err(); err == nil {
			more, err = b.Step(pagesAtOnce)
		}
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return err
	}
	return check(dst)
}

// check lets SQLite look at all pages of a database.
func check(conn *sqlite.Conn) error {
	said := ""
	err := sqlitex.ExecuteTransient(conn, "PRAGMA quick_check(1)", &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { said = s.ColumnText(0); return nil },
	})
	if err == nil && said != "ok" {
		e := forebay.Errorf(forebay.CodeDamaged, "", "the database is damaged: %s", said)
		e.Hint = "restart the server: a start recovers what can be read"
		return e
	}
	return err
}

func pragma(conn *sqlite.Conn, name string) (n int64, err error) {
	err = sqlitex.ExecuteTransient(conn, fmt.Sprintf("PRAGMA %s", name), &sqlitex.ExecOptions{
		ResultFunc: func(s *sqlite.Stmt) error { n = s.ColumnInt64(0); return nil },
	})
	return n, err
}

// syncFile makes a file, or the names in a folder, survive a power loss.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
