// Package sink writes events into a database, in batches. It holds what all
// sinks share: the words of the table, and Writer, the batch handler that decides
// what happens when a database says no. The databases are in its sub-packages.
//
// # The life of a failed batch
//
//  1. The database does not answer, is full, locked, or cut the connection: the
//     sink pauses. The batch is kept and tried again, with growing waits, until it
//     is written, the worker drains or the context ends. Nothing is charged to the
//     messages, nothing is skipped, so the order is kept.
//  2. The database takes too long for a batch, again and again: the batch is
//     written in halves.
//  3. The database refuses the data: the batch is halved until the refused rows
//     stand alone. They come back as permanent errors that name the code, the
//     column and the constraint; all others are written.
//  4. The database answers with an error that nobody knows: a few more tries, then
//     a row of our own is tried. If that fails too, the database is at fault: as 1.
//     If it passes, the rows are: as 3, but the message is retried later by the
//     broker's policy before it becomes a dead letter.
//
// It promises that writing a batch again is harmless (rows are keyed by the event
// id), that one bad row never keeps a good one from being written, and that no
// outage of the database makes a dead letter.
//
// It refuses to validate or change events: what the edge accepted is written as it
// is, or refused by the database.
package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
)

// Table is the table's name unless a setting gives another.
const Table = "events"

// Columns are the table's columns, in order; the same in every database.
func Columns() []string {
	return []string{
		"event_id", "event_type", "user_id", "payload", "received_at",
		"occurred_at", "sent_at", "source", "original_at",
	}
}

// Database is what a Writer writes to. Its methods may be called from several
// goroutines and put deadlines on what they do.
type Database interface {
	// Write writes all events, in their order, or none, and keeps none of them. One
	// that is there already is skipped; written counts the others. An error that is
	// no *Refused is taken for an outage.
	Write(ctx context.Context, events []event.Event) (written int, err error)

	// Check tells whether a harmless row could be written now, and leaves none.
	Check(ctx context.Context) error

	// Explain says why Write refused this one event with err.
	Explain(ctx context.Context, e *event.Event, err error) forebay.Cause
}

// Refused is the database's answer to data that it would refuse again. Sure is
// false where the error is of no known kind.
type Refused struct {
	Sure bool
	Err  error
}

func (r *Refused) Error() string { return r.Err.Error() }
func (r *Refused) Unwrap() error { return r.Err }

// explainTimeout bounds the questions about all refused rows of a batch.
const explainTimeout = 30 * time.Second

// Config of a Writer. The zero value works.
type Config struct {
	Name     string        // in logs: "postgres"; default "sink"
	PauseMin time.Duration // the first wait after a transient error; default 100 ms
	PauseMax time.Duration // the longest; default 15 s

	Logger  *slog.Logger     // default: none
	Observe func(Batch)      // called after each batch; must not keep Batch.Latency
	OnState func(State)      // called when the sink pauses and when it goes on
	Now     func() time.Time // default time.Now
}

// Batch tells of one batch that was handled.
type Batch struct {
	Rows       int             // handed over
	Written    int             // new in the table
	Duplicates int             // were there already
	Refused    int             // undecodable, or refused by the database
	Left       int             // not tried to the end, since the context ended
	Took       time.Duration   // pauses included
	Latency    []time.Duration // from received to written, of each row in the table; none of Again
}

// Writer is the batch handler of a sink. It may handle several batches at once.
type Writer struct {
	db   Database
	cfg  Config
	gate gate
	free sync.Pool // of *workspace
}

// workspace is what a batch needs while it is handled. It is used again: its events
// are more than all else that a batch allocates.
type workspace struct {
	events  []event.Event
	index   []int // leads from an event to its delivery
	latency []time.Duration
}

func (w *Writer) borrow() *workspace {
	if ws, ok := w.free.Get().(*workspace); ok {
		return ws
	}
	return &workspace{}
}

// giveBack lets go of the messages that the events share their bytes with.
func (w *Writer) giveBack(ws *workspace) {
	clear(ws.events)
	ws.events, ws.index, ws.latency = ws.events[:0], ws.index[:0], ws.latency[:0]
	w.free.Put(ws)
}

// NewWriter makes the batch handler of a database.
func NewWriter(db Database, cfg Config) *Writer {
	if cfg.Name == "" {
		cfg.Name = "sink"
	}
	if cfg.PauseMin <= 0 {
		cfg.PauseMin = 100 * time.Millisecond
	}
	if cfg.PauseMax <= 0 {
		cfg.PauseMax = 15 * time.Second
	}
	cfg.PauseMax = max(cfg.PauseMax, cfg.PauseMin)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Writer{db: db, cfg: cfg}
}

// State tells whether the sink is paused, and why.
func (w *Writer) State() State { return w.gate.current() }

// HandleBatch writes the events of a batch. An error stands at the index of each
// delivery that is not in the table; a nil slice means that all are.
func (w *Writer) HandleBatch(ctx context.Context, ds []forebay.Delivery) []error {
	return w.handle(ctx, ds, true)
}

// Again is HandleBatch for what is written from the history. How long ago that was
// received says nothing of the sink: its Batch has no Latency.
func (w *Writer) Again(ctx context.Context, ds []forebay.Delivery) []error {
	return w.handle(ctx, ds, false)
}

func (w *Writer) handle(ctx context.Context, ds []forebay.Delivery, live bool) []error {
	start := w.cfg.Now()
	errs := make([]error, len(ds))
	ws := w.borrow()
	defer w.giveBack(ws)
	ws.decode(ds, errs)
	events, index := ws.events, ws.index
	results, written := w.write(ctx, events)
	b := Batch{Rows: len(ds), Written: written, Refused: len(ds) - len(events)}
	there := 0
	end := w.cfg.Now()
	explaining, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	for i, err := range results {
		var refused *Refused
		switch {
		case err == nil:
			there++
			if live {
				ws.latency = append(ws.latency, max(0, end.Sub(events[i].ReceivedAt)))
			}
		case errors.As(err, &refused):
			b.Refused++
			errs[index[i]] = w.explain(explaining, &events[i], refused)
		default:
			b.Left++
			errs[index[i]] = err
		}
	}
	b.Latency = ws.latency
	b.Duplicates = there - written
	b.Took = end.Sub(start)
	if w.cfg.Observe != nil {
		w.cfg.Observe(b)
	}
	if b.Refused+b.Left == 0 {
		return nil
	}
	return errs
}

// decode reads the events. An undecodable one gets its error in errs.
func (ws *workspace) decode(ds []forebay.Delivery, errs []error) {
	ws.events, ws.index = slices.Grow(ws.events, len(ds)), slices.Grow(ws.index, len(ds))
	for i := range ds {
		e, err := event.Decode(ds[i].Payload)
		if err != nil {
			errs[i] = forebay.Permanent(forebay.Because(forebay.Cause{Code: "decode"}, err))
			continue
		}
		ws.events, ws.index = append(ws.events, e), append(ws.index, i)
	}
}

func (w *Writer) explain(ctx context.Context, e *event.Event, refused *Refused) error {
	err := forebay.Because(w.db.Explain(ctx, e, refused.Err), fmt.Errorf("%s: %w", w.cfg.Name, refused.Err))
	if refused.Sure {
		return forebay.Permanent(err)
	}
	return err
}
