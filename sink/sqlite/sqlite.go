// Package sqlite is the sink that writes events into one SQLite file: the default,
// with no server beside it.
//
// The table is events, with the columns of every sink; times are text in UTC with
// a fixed width (2026-11-29T10:00:00.123456Z), so that they sort as they are. The
// key is event_id. Any tool that reads SQLite may read the file meanwhile.
//
// It promises, beside what package sink promises, that a batch is synced to disk
// before it is reported as written; that a file that it does not know, or that is
// newer, is left as it is; and that a damaged one is kept, with what can be read
// of it taken over into a new one (see damage.go).
//
// It refuses to share the writing: one process, one Sink.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/internal/salvage"
	"github.com/forebayhq/forebay/sink"
)

// Config of a Sink. The zero value works.
type Config struct {
	sink.Config

	Timeout   time.Duration // of one batch; default 30 s
	Retention time.Duration // older events are deleted; 0: kept for ever
}

// Sink writes events into a file. Its HandleBatch and State are the Writer's.
type Sink struct {
	*sink.Writer
	db   *database
	stop context.CancelFunc
	done chan struct{} // closed when the upkeep has ended
}

// database is what the Writer writes to. A connection is taken out of its channel
// to be used, and put back.
type database struct {
	path      string
	cfg       Config
	insertSQL string
	writer    chan *sqlite.Conn
	reader    chan *sqlite.Conn
	damage    atomic.Pointer[forebay.Error] // that was met since Open; nothing is written any more
}

// Open opens the file, or makes it, and prepares its table.
func Open(path string, cfg Config) (*Sink, error) {
	if cfg.Name == "" {
		cfg.Name = "sqlite"
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Retention < 0 {
		return nil, &forebay.Error{Code: forebay.CodeInvalid, Op: "sqlite: open", Field: "retention", Text: "must not be negative"}
	}
	db, err := openDatabase(path, cfg)
	if err != nil {
		return nil, err
	}
	s := &Sink{Writer: sink.NewWriter(db, cfg.Config), db: db, done: make(chan struct{})}
	upkeep, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		defer close(s.done)
		s.Upkeep(upkeep, s.Maintain) // the first one too: it may have years to delete
	}()
	return s, nil
}

func openDatabase(path string, cfg Config) (*database, error) {
	db := &database{path: path, cfg: cfg, insertSQL: insertSQL(), writer: make(chan *sqlite.Conn, 1), reader: make(chan *sqlite.Conn, 1)}
	plan := salvage.Plan{Make: func(conn *sqlite.Conn) error { return prepare(conn, path) }, Logger: cfg.Logger}
	_, err := salvage.Open(path, plan, func() error {
		w, err := openWriter(path)
		if err != nil {
			return openError(path, err)
		}
		r, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
		if err != nil {
			_ = w.Close()
			return openError(path, err)
		}
		db.writer <- w
		db.reader <- r
		return nil
	})
	if err != nil {
		return nil, err
	}
	return db, nil
}

// openError names what is wrong with the file and what can be done about it.
func openError(path string, err error) error {
	var ours *forebay.Error
	if errors.As(err, &ours) {
		return ours
	}
	e := forebay.Errorf(forebay.CodeUnavailable, "sqlite: open", "%s: %w", path, err)
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultNotADB, sqlite.ResultCorrupt:
		e.Code = forebay.CodeDamaged
	case sqlite.ResultFull:
		e.Code = forebay.CodeFull
	case sqlite.ResultReadOnly, sqlite.ResultPerm, sqlite.ResultCantOpen:
		e.Code = forebay.CodeInvalid
		e.Hint = "the folder must be there, and this user must be able to write to it and to the file"
	}
	return e
}

// use runs f with the connection of a channel. Statements end with ctx.
func (db *database) use(ctx context.Context, conns chan *sqlite.Conn, f func(*sqlite.Conn) error) error {
	select {
	case conn, open := <-conns:
		if !open {
			return forebay.Errorf(forebay.CodeClosed, "sqlite", "the sink is closed")
		}
		defer func() { conns <- conn }()
		conn.SetInterrupt(ctx.Done())
		defer conn.SetInterrupt(nil)
		err := db.note(f(conn))
		if err != nil && ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Find reads the event back; false: it is not in the table.
func (s *Sink) Find(ctx context.Context, eventID string) (e event.Event, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.cfg.Timeout)
	defer cancel()
	err = s.db.use(ctx, s.db.reader, func(conn *sqlite.Conn) error {
		return sqlitex.Execute(conn, "SELECT "+strings.Join(sink.Columns(), ", ")+" FROM events WHERE event_id = ?", &sqlitex.ExecOptions{
			Args: []any{eventID},
			ResultFunc: func(row *sqlite.Stmt) (err error) {
				found = true
				e, err = read(row)
				return err
			},
		})
	})
	if err != nil {
		return event.Event{}, false, forebay.Errorf(forebay.CodeUnavailable, "sqlite: find", "%w", err)
	}
	return e, found, nil
}

// Check tells whether events could be written now.
func (s *Sink) Check(ctx context.Context) error {
	if err := s.db.Check(ctx); err != nil {
		return forebay.Errorf(forebay.CodeUnavailable, "sqlite: check", "%w", err)
	}
	return nil
}

// Maintain deletes what is older than the retention, in slices between which
// batches are written. The sink does it by itself when it opens and each hour.
func (s *Sink) Maintain(ctx context.Context) error {
	if s.db.cfg.Retention == 0 {
		return nil
	}
	cutoff := timeText(s.db.cfg.Now().Add(-s.db.cfg.Retention))
	total := 0
	for {
		deleted, err := s.db.deleteSlice(ctx, cutoff)
		if err != nil {
			return err
		}
		total += deleted
		if deleted < deleteSlice {
			break
		}
	}
	if total > 0 {
		s.db.cfg.Logger.Info("events deleted by retention", slog.String("sink", s.db.cfg.Name), slog.Int("events", total))
	}
	return nil
}

// Close ends the upkeep, waits for statements that run, and closes the file.
// Later calls are refused.
func (s *Sink) Close() error {
	s.stop()
	<-s.done
	var errs []error
	for _, conns := range []chan *sqlite.Conn{s.db.reader, s.db.writer} {
		conn := <-conns
		close(conns)
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// writable finds out early what SQLite would tell as "unable to open".
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return &forebay.Error{Code: forebay.CodeInvalid, Op: "sqlite: open", Text: err.Error(), Err: err,
			Hint: "the folder must be there, and this user must be able to write to it and to the file"}
	}
	return f.Close()
}
