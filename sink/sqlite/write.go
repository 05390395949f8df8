package sqlite

import (
	"context"
	"errors"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/sink"
)

// deleteSlice is how many events retention deletes per transaction.
const deleteSlice = 2000

// timeLayout has a fixed width, so that text sorts as time does. Microseconds are
// what PostgreSQL keeps: both sinks hold the same times.
const timeLayout = "2006-01-02T15:04:05.000000Z"

func timeText(t time.Time) string { return t.UTC().Truncate(time.Microsecond).Format(timeLayout) }

// insertSQL names the key: a row that hurts another unique constraint, which a
// user has added, must fail and not vanish.
func insertSQL() string {
	columns := sink.Columns()
	return "INSERT INTO events (" + strings.Join(columns, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(columns)-1) +
		") ON CONFLICT (event_id) DO NOTHING"
}

const deleteSQL = `DELETE FROM events WHERE rowid IN (SELECT rowid FROM events WHERE received_at < ? LIMIT ?)`

// Write writes all events or none.
func (db *database) Write(ctx context.Context, events []event.Event) (written int, err error) {
	limited, cancel := context.WithTimeout(ctx, db.cfg.Timeout)
	defer cancel()
	err = db.write(limited, func(conn *sqlite.Conn) (err error) {
		written, err = db.insert(conn, events)
		return err
	})
	if err != nil {
		return 0, refused(err)
	}
	return written, nil
}

func (db *database) insert(conn *sqlite.Conn, events []event.Event) (written int, err error) {
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return 0, err
	}
	defer end(&err)
	return db.insertRows(conn, events)
}

// insertRows inserts within the transaction of its caller, row by row: statements
// of several rows were measured and gain less than a tenth.
func (db *database) insertRows(conn *sqlite.Conn, events []event.Event) (written int, err error) {
	stmt, err := conn.Prepare(db.insertSQL)
	if err != nil {
		return 0, err
	}
	for i := range events {
		bind(stmt, &events[i])
		if _, err := stmt.Step(); err != nil {
			return 0, err // Step has reset the statement
		}
		written += conn.Changes()
		if err := stmt.Reset(); err != nil {
			return 0, err
		}
	}
	return written, nil
}

func bind(stmt *sqlite.Stmt, e *event.Event) {
	stmt.BindText(1, e.ID)
	stmt.BindText(2, e.Type)
	bindText(stmt, 3, e.UserID)
	stmt.BindText(4, string(e.Payload))
	stmt.BindText(5, timeText(e.ReceivedAt))
	bindTime(stmt, 6, e.OccurredAt)
	bindTime(stmt, 7, e.SentAt)
	bindText(stmt, 8, e.Source)
	bindTime(stmt, 9, e.OriginalAt)
}

func bindText(stmt *sqlite.Stmt, at int, s string) {
	if s == "" {
		stmt.BindNull(at)
		return
	}
	stmt.BindText(at, s)
}

func bindTime(stmt *sqlite.Stmt, at int, t time.Time) {
	if t.IsZero() {
		stmt.BindNull(at)
		return
	}
	stmt.BindText(at, timeText(t))
}

// read is the counterpart of bind.
func read(row *sqlite.Stmt) (event.Event, error) {
	e := event.Event{
		ID: row.ColumnText(0), Type: row.ColumnText(1), UserID: row.ColumnText(2),
		Payload: []byte(row.ColumnText(3)), Source: row.ColumnText(7),
	}
	for column, into := range map[int]*time.Time{4: &e.ReceivedAt, 5: &e.OccurredAt, 6: &e.SentAt, 8: &e.OriginalAt} {
		text := row.ColumnText(column)
		if text == "" {
			continue
		}
		t, err := time.Parse(timeLayout, text)
		if err != nil {
			return event.Event{}, forebay.Errorf(forebay.CodeDamaged, "sqlite: read", "%w", err)
		}
		*into = t
	}
	return e, nil
}

// errRolledBack ends the transaction of Check.
var errRolledBack = errors.New("rolled back as intended")

// Check writes a row of our own and takes it back. A database that refuses that
// row for its data is one that answers.
func (db *database) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, db.cfg.Timeout)
	defer cancel()
	probe := event.Event{ID: "forebay-check", Type: "forebay_check", Payload: []byte(`{}`), ReceivedAt: db.cfg.Now()}
	err := db.write(ctx, func(conn *sqlite.Conn) (err error) {
		end := sqlitex.Save(conn)
		defer end(&err)
		if _, err := db.insertRows(conn, []event.Event{probe}); err != nil {
			return err
		}
		return errRolledBack
	})
	if errors.Is(err, errRolledBack) || classOf(err) == classData {
		return nil
	}
	return err
}

func (db *database) deleteSlice(ctx context.Context, cutoff string) (deleted int, err error) {
	limited, cancel := context.WithTimeout(ctx, db.cfg.Timeout)
	defer cancel()
	err = db.write(limited, func(conn *sqlite.Conn) error {
		err := sqlitex.Execute(conn, deleteSQL, &sqlitex.ExecOptions{Args: []any{cutoff, deleteSlice}})
		deleted = conn.Changes()
		return err
	})
	return deleted, err
}
