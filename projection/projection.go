// Package projection builds states from what was sent: a projection applies messages of
// a log (engine.Log) one after the other, in transactions that keep its place too.
//
// It promises that each message is applied once, in the order of sending, whatever is
// killed when: what Apply writes and the place up to which it has come are in one
// transaction. A reader goes on after its place, follows without polling, and can begin
// anew (Rebuild). Two readers of one name do not apply anything twice.
//
// It refuses to pass over what it cannot apply: an error of Apply stops the reader, and
// nothing of its batch stays. It refuses to go on where messages have left the log
// unread, or in another store: it says so, and a person decides to rebuild.
//
// The states are kept in a database of the user: its sub-packages are for SQLite and
// PostgreSQL. T is what a transaction of that database is.
package projection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Projection is what a user writes.
type Projection[T any] interface {
	// Reset makes the state as it is before the first message: tables are there, and
	// empty. It is called before the first message, and by Rebuild.
	Reset(ctx context.Context, tx T) error
	// Apply takes one message into the state, by nothing but tx.
	Apply(ctx context.Context, tx T, e engine.LogEntry) error
}

// Store is the database that holds the state.
type Store[T any] interface {
	// Update runs f in a transaction; an error undoes it. It may run f again.
	Update(ctx context.Context, f func(tx T) error) error
	// Place gives the place of a projection, and locks it until the transaction ends.
	Place(ctx context.Context, tx T, name string) (p Place, found bool, err error)
	// SetPlace keeps it.
	SetPlace(ctx context.Context, tx T, name string, p Place) error
}

// Place is how far a projection is.
type Place struct {
	Epoch string // of the store that the log is in
	After int64
}

// Log is what is read; *broker.Broker is one, and engines are.
type Log interface {
	ReadLog(ctx context.Context, q engine.LogQuery) (engine.LogPage, error)
}

// Config of a reader. Name, Queue, Log, Store and Projection are needed.
type Config[T any] struct {
	Name       string // its place is kept under it
	Queue      string
	Kinds      []string // none: all
	Log        Log
	Store      Store[T]
	Projection Projection[T]
	Batch      int // messages of one transaction at most; default 500
}

const (
	defaultBatch = 500
	followWait   = time.Minute // of one read
	maxName      = 200
)

// Reader applies what is in the log. It may be used by one goroutine at a time.
type Reader[T any] struct {
	cfg Config[T]
}

// New makes a reader.
func New[T any](cfg Config[T]) (*Reader[T], error) {
	bad := func(field, text string) error {
		return &forebay.Error{Code: forebay.CodeInvalid, Op: "projection: new", Field: field, Text: text}
	}
	switch {
	case cfg.Name == "" || len(cfg.Name) > maxName:
		return nil, bad("name", fmt.Sprintf("a projection has a name of 1 to %d bytes", maxName))
	case cfg.Log == nil || cfg.Store == nil || cfg.Projection == nil:
		return nil, bad("", "log, store and projection are needed")
	case cfg.Batch < 0 || cfg.Batch > engine.MaxLog:
		return nil, bad("batch", fmt.Sprintf("a batch has 1 to %d messages, or 0 for %d", engine.MaxLog, defaultBatch))
	}
	if err := engine.CheckQueue(cfg.Queue); err != nil {
		return nil, err
	}
	if cfg.Batch == 0 {
		cfg.Batch = defaultBatch
	}
	return &Reader[T]{cfg: cfg}, nil
}

// Run applies what is there and what comes, until ctx ends. An error is one that going
// on would not mend by itself.
func (r *Reader[T]) Run(ctx context.Context) error {
	for {
		if err := r.read(ctx, followWait, nil); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// CatchUp applies what is there now, and returns then.
func (r *Reader[T]) CatchUp(ctx context.Context) error {
	newest, err := r.cfg.Log.ReadLog(ctx, engine.LogQuery{Queue: r.cfg.Queue, After: -1})
	if err != nil {
		return err
	}
	return r.read(ctx, 0, &newest.Next)
}

// Rebuild resets the state and applies what the log has from its oldest message on.
// Who reads the state meanwhile sees it grow.
func (r *Reader[T]) Rebuild(ctx context.Context) error {
	if err := r.Restart(ctx); err != nil {
		return err
	}
	return r.CatchUp(ctx)
}

// Restart resets the state, so that whoever reads on, here or elsewhere, rebuilds it.
func (r *Reader[T]) Restart(ctx context.Context) error {
	return r.cfg.Store.Update(ctx, func(tx T) error {
		if _, _, err := r.cfg.Store.Place(ctx, tx, r.cfg.Name); err != nil {
			return err
		}
		if err := r.cfg.Projection.Reset(ctx, tx); err != nil {
			return err
		}
		return r.cfg.Store.SetPlace(ctx, tx, r.cfg.Name, Place{})
	})
}

// errMoved says that another reader was first.
var errMoved = errors.New("another reader has moved the place")

// read applies page by page: to the end, or to a place.
func (r *Reader[T]) read(ctx context.Context, wait time.Duration, end *int64) error {
	for {
		at, err := r.place(ctx)
		if err != nil {
			return err
		}
		page, err := r.cfg.Log.ReadLog(ctx, engine.LogQuery{Queue: r.cfg.Queue, Kinds: r.cfg.Kinds, After: at.After, Limit: r.cfg.Batch, Wait: wait})
		if err != nil {
			return err
		}
		if err := r.follows(at, &page); err != nil {
			return err
		}
		if page.Next > at.After {
			if err := r.apply(ctx, at, &page); err != nil && !errors.Is(err, errMoved) {
				return err
			}
		}
		if !page.More || end != nil && page.Next >= *end {
			return nil
		}
	}
}

// follows tells whether a page goes on where the projection is.
func (r *Reader[T]) follows(at Place, page *engine.LogPage) error {
	e := &forebay.Error{Code: forebay.CodeConflict, Op: "projection: " + r.cfg.Name, Hint: "rebuild it from what the log still has"}
	switch {
	case at.After == 0:
		return nil
	case at.Epoch != page.Epoch:
		e.Text = "the log is that of another store than the one it was built from"
	case at.After < page.Oldest:
		e.Text = "messages have left the log that it has not read"
	default:
		return nil
	}
	return e
}

// place reads where the projection is; one that is new is reset.
func (r *Reader[T]) place(ctx context.Context) (at Place, err error) {
	err = r.cfg.Store.Update(ctx, func(tx T) error {
		var found bool
		at, found, err = r.cfg.Store.Place(ctx, tx, r.cfg.Name)
		if found || err != nil {
			return err
		}
		if err := r.cfg.Projection.Reset(ctx, tx); err != nil {
			return err
		}
		return r.cfg.Store.SetPlace(ctx, tx, r.cfg.Name, Place{})
	})
	return at, err
}

// apply takes a page into the state and moves the place, in one transaction.
func (r *Reader[T]) apply(ctx context.Context, at Place, page *engine.LogPage) error {
	return r.cfg.Store.Update(ctx, func(tx T) error {
		now, _, err := r.cfg.Store.Place(ctx, tx, r.cfg.Name)
		if err != nil {
			return err
		}
		if now != at {
			return errMoved
		}
		for _, e := range page.Entries {
			if err := r.cfg.Projection.Apply(ctx, tx, e); err != nil {
				return fmt.Errorf("projection %s: message %s at %d: %w", r.cfg.Name, e.Message.ID, e.Seq, err)
			}
		}
		return r.cfg.Store.SetPlace(ctx, tx, r.cfg.Name, Place{Epoch: page.Epoch, After: page.Next})
	})
}
