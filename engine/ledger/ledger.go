// Package ledger is an engine over two: one with a ledger, which keeps jobs, and a
// remote one (AWS SQS), over which some of its queues run.
//
// A job of such a queue is a row of the ledger first. Then a message on the remote
// queue gives notice that one more job may begin. Who receives a notice begins the job
// whose turn it is by the ledger, settles the row, and then lets the notice go.
//
// # What it promises
//
//   - The ledger is the truth, and notices are hints: they carry no job, and none is
//     written down here. A lost one is sent again, one too many finds nothing to begin and
//     goes. So a process may die between row and notice, and between verdict and the end
//     of the notice: nothing is lost, and nothing is done twice because of it.
//   - All that the ledger can do holds, and what the remote engine cannot do is no matter:
//     priorities, groups, limits, delays of any length (notice is given when they are
//     over), cancel and lookup by id, expiry, retries, dead letters, history.
//   - Send and Settle do not wait for the remote engine. While it is away jobs are taken
//     and wait; Run gives notice again, later and later.
//   - At most Window notices of a queue are on their way, however many jobs wait.
//   - What somebody else sends to the remote queue becomes a job, which is in the ledger
//     before its message goes. Sent once, it is one job: told by its id. What cannot be a
//     job is a dead letter of the remote engine, or of the ledger where that keeps none.
//   - While a job is worked its notice is in flight there, so that what the remote queue
//     shows is what there is to do, up to Window.
//
// # What it refuses
//
// To begin a job without a notice: while the remote engine is away none begins. To make
// a ledger of one process into one of several: the workers of the queue run where the
// ledger is. Order and dedup of the remote queue: it must be a standard one.
package ledger

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Config of an engine.
type Config struct {
	// Queues run over the remote engine, where they have the same names.
	Queues []string

	// Window is the most notices of one queue that are on their way. 0: 1000.
	Window int

	// Logger is told when the remote engine goes and comes. Nil: nobody is.
	Logger *slog.Logger
}

// Engine is both engines. Make one with New, and run its Run.
type Engine struct {
	rows    engine.Engine
	history engine.History
	remote  engine.Engine
	window  int64
	log     *slog.Logger
	queues  map[string]*queue
	chores  chan chore
	held    held
}

var _ engine.Engine = (*Engine)(nil)

// New runs some queues of rows, which has a ledger, over remote.
func New(rows, remote engine.Engine, cfg Config) (*Engine, error) {
	bad := func(format string, args ...any) (*Engine, error) {
		return nil, forebay.Errorf(forebay.CodeInvalid, "ledger", format, args...)
	}
	if rows == nil || remote == nil {
		return bad("an engine with a ledger and a remote one are needed")
	}
	if _, ok := engine.As[engine.Jobs](rows); !ok {
		return bad("the engine that is to keep jobs has no ledger")
	}
	history, ok := engine.As[engine.History](rows)
	if !ok {
		return bad("the engine that is to keep jobs has no history")
	}
	if len(cfg.Queues) == 0 || cfg.Window < 0 {
		return bad("%d queues and a window of %d; at least one queue is needed, and 0 is the default window", len(cfg.Queues), cfg.Window)
	}
	if cfg.Window == 0 {
		cfg.Window = 1000
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		rows: rows, history: history, remote: remote, window: int64(cfg.Window), log: cfg.Logger,
		queues: make(map[string]*queue), chores: make(chan chore, maxChores), held: newHeld(),
	}
	for _, name := range cfg.Queues {
		if err := engine.CheckQueue(name); err != nil {
			return nil, err
		}
		e.queues[name] = newQueue(name)
	}
	return e, nil
}

// Unwrap gives the engine with the ledger, whose other abilities are found through it.
func (e *Engine) Unwrap() engine.Engine { return e.rows }

// Send stores messages in the ledger's engine. Notice is given by Run.
func (e *Engine) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	results, err := e.rows.Send(ctx, msgs)
	e.ringFor(msgs)
	return results, err
}

// Extend extends leases of jobs, and then of their notices.
func (e *Engine) Extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	errs, err := e.rows.Extend(ctx, receipts, lease)
	if err != nil {
		return errs, err
	}
	until := time.Now().Add(lease)
	var longer, gone []forebay.Receipt
	for i, r := range receipts {
		code := forebay.CodeOf(errs[i])
		switch {
		case errs[i] != nil && code != forebay.CodeCancelled && code != forebay.CodeLeaseLost:
		case lease == 0 || code == forebay.CodeLeaseLost:
			if one := e.held.take(r); one != nil {
				gone = append(gone, one.notice)
				one.q.ring()
			}
		default:
			if one := e.held.extend(r, until); one != nil {
				longer = append(longer, one.notice)
			}
		}
	}
	e.later(chore{receipts: longer, lease: lease})
	e.later(chore{receipts: gone})
	return errs, nil
}

// Settle ends deliveries in the ledger's engine, and then lets their notices go. What
// waits again needs another one.
func (e *Engine) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	errs, err := e.rows.Settle(ctx, ss)
	if err != nil {
		return errs, err
	}
	var gone []forebay.Receipt
	for i, s := range ss {
		if errs[i] != nil && forebay.CodeOf(errs[i]) != forebay.CodeLeaseLost {
			continue
		}
		e.ringFor(s.Next)
		one := e.held.take(s.Receipt)
		if one == nil {
			continue
		}
		gone = append(gone, one.notice)
		if s.Verdict == forebay.Retry || s.Verdict == forebay.Release {
			one.q.due(time.Now().Add(s.After))
		}
	}
	e.later(chore{receipts: gone})
	return errs, nil
}

func (e *Engine) ringFor(msgs []forebay.Message) {
	for i := range msgs {
		if q := e.queues[msgs[i].Queue]; q != nil {
			q.due(msgs[i].NotBefore)
		}
	}
}

// Stats counts what the ledger's engine has.
func (e *Engine) Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error) {
	return e.rows.Stats(ctx, queues...)
}

// Away names the queues of which no notice can be given now, and so no job begins.
func (e *Engine) Away() []string {
	var names []string
	for name, q := range e.queues {
		if q.away() {
			names = append(names, name)
		}
	}
	return names
}

// closeTimeout bounds what Close still tells the remote engine.
const closeTimeout = 5 * time.Second

// Close lets notices go that are done with, and closes both engines. Run has to have ended.
func (e *Engine) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for {
		select {
		case c := <-e.chores:
			e.do(ctx, c)
			continue
		default:
		}
		return errors.Join(e.remote.Close(), e.rows.Close())
	}
}
