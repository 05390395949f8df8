// Package worker is the one consume loop: it takes messages of a queue from a
// broker, hands them to a handler one by one or in batches, keeps their leases
// alive, and settles them.
//
// # Who runs
//
//	        ask            deliveries          work             errors
//	broker ◀─── receive ──────────────▶ loop ────────▶ handler ────────▶ loop
//	   ▲                                  │                                │
//	   ├── Extend ── keeper ◀── holds ────┘                                │
//	   ├── Settle ── settler ◀── verdicts ─────────────────────────────────┤
//	   └── Progress ── talker ◀── what job handlers tell ─────────────────┘
//
// The loop owns all decisions and is one goroutine. The keeper renews leases
// early, many in one call. The settler writes verdicts: at once when idle, and
// what arrives while it writes goes together with the next write. The talker writes
// what jobs tell, before their verdicts; no handler waits for it.
//
// # What it promises
//
//   - A failed item, a panic, a wrong answer of a batch handler touch their item only.
//   - A delivery is not extended any more when it is settled, and not settled when
//     its lease is lost. Then its handler's context ends with forebay.ErrLeaseLost.
//   - A handler sees messages of a group in order. One by one: the next starts when
//     the one before is done; after a failure the rest at hand is released.
//   - No more is taken than can start soon: one by one, what the handlers clear in
//     50 ms; in batches, the next batch while one is handled.
//   - A message that was often handed out without a verdict is handled in a batch
//     of its own, so that it cannot take its neighbours with it.
//   - A job that is cancelled, or is over its timeout or deadline, ends: the context
//     of its handler ends with the cause, and after a bounded grace the job is
//     settled without it (end.go). Jobs in batches are not ended while a handler has them.
//   - Draining is bounded, and costs no attempt (Run).
//
// # What it refuses
//
// It has no policy: what an error means is decided by broker.Decide. It gives no
// time limit of its own to a handler; one that waits keeps its lease as long as it
// waits. It does not promise exactly once: a handler must bear repetition, or do
// what must not be repeated in Job.Once.
package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
)

// Handler handles one delivery. nil means done; errors steer what comes next
// (forebay.Permanent, RetryAfter, Snooze, Because). It may run many times at once.
type Handler interface {
	Handle(ctx context.Context, d forebay.Delivery) error
}

// BatchHandler handles many deliveries and answers by index; a nil slice means
// that all is done. Messages of one group come in order, and each is settled as
// its own answer says: who fails one and wants the order kept fails those behind
// it too. A call that panics, or whose answer has a wrong length, is repeated item
// by item, so it must bear repetition. ctx ends early when draining, or when the
// leases of all items are lost.
type BatchHandler interface {
	HandleBatch(ctx context.Context, ds []forebay.Delivery) []error
}

// HandlerFunc makes a function a Handler.
type HandlerFunc func(ctx context.Context, d forebay.Delivery) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, d forebay.Delivery) error { return f(ctx, d) }

// BatchFunc makes a function a BatchHandler.
type BatchFunc func(ctx context.Context, ds []forebay.Delivery) []error

// HandleBatch calls f.
func (f BatchFunc) HandleBatch(ctx context.Context, ds []forebay.Delivery) []error { return f(ctx, ds) }

// Config of a worker. Queue and one of Handler, Batch and Jobs are needed.
type Config struct {
	Queue   string
	Handler Handler
	Batch   BatchHandler
	Jobs    JobHandler

	Concurrency int           // handlers, or batches, at once; 0: 10 handlers, 1 batch
	Auto        *Concurrency  // instead: as many as the back end takes, within its bounds; its Fixed counts for nothing
	BatchMax    int           // messages of a batch at most; 0: 500
	BatchBytes  int           // payload bytes of a batch at most, or one message; 0: 8 MiB
	BatchWait   time.Duration // how long a batch may wait to fill, since its first message; 0: not at all

	Lease        time.Duration // renewed at a third; 0: forebay.DefaultLease
	DrainTimeout time.Duration // how long handlers may go on when Run's context has ended; 0: 20 s
	CancelGrace  time.Duration // how long the handler of a job that has been ended may take to return; 0: 10 s

	MostConcurrency int // that Tune may ever allow; 0: 1000 handlers, or as many batches as the above allow

	Logger  *slog.Logger // nil: silent
	Observe Observe
}

// Observe is told what happens. Each may be nil; they are called from several
// goroutines and must be quick. Every delivery ends in exactly one of Settled,
// LeaseLost and SettleFailed.
type Observe struct {
	Settled      func(Outcome)                            // its verdict is stored
	LeaseLost    func(forebay.Delivery)                   // another consumer may have it
	SettleFailed func(d forebay.Delivery, err error)      // it comes again when its lease ends
	LeftBehind   func(d forebay.Delivery, cause error)    // its job was ended, and its handler did not return
	Batch        func(size, bytes int, run time.Duration) // a batch handler has returned
	Received     func(queue string, n int)                // a receive was answered; 0: its wait ran out
}

// Outcome of one delivery.
type Outcome struct {
	Delivery forebay.Delivery
	Verdict  forebay.Verdict
	Cause    forebay.Cause // of all but Ack and Release
	Started  bool          // a handler saw it
	Began    time.Time     // when; zero: none did
	Wait     time.Duration // from the sending, or the message's NotBefore, to the handler
	Run      time.Duration // of the handler, or of its whole batch
	Batch    int           // how many shared that handler's call; 0: no handler saw it
}

const (
	minLease     = 100 * time.Millisecond
	receiveWait  = 20 * time.Second // how long one receive waits for messages
	receiveSlack = 10 * time.Second // how much later it must have answered
	grace        = 5 * time.Second  // for handlers to return once their context has ended
	flushTimeout = 10 * time.Second // for the last verdicts
)

// Worker consumes one queue.
type Worker struct {
	b       *broker.Broker
	cfg     Config
	log     *slog.Logger
	started atomic.Bool
	abort   chan struct{}
	once    sync.Once // closes abort
	busy    atomic.Int64
	slots   atomic.Int64 // how many may run now, about

	concurrency atomic.Pointer[Concurrency]
	tuned       chan struct{} // capacity 1: concurrency was set
	most        int           // that it may be
}

// New makes a worker. Every problem of cfg is reported at once.
func New(b *broker.Broker, cfg Config) (*Worker, error) {
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 10
		if cfg.Batch != nil {
			cfg.Concurrency = 1
		}
	}
	fill(&cfg.BatchMax, 500)
	fill(&cfg.BatchBytes, 8<<20)
	fill(&cfg.Lease, forebay.DefaultLease)
	fill(&cfg.DrainTimeout, 20*time.Second)
	fill(&cfg.CancelGrace, 10*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := cfg.check(b); err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "worker: new", "%w", err)
	}
	w := &Worker{
		b:     b,
		cfg:   cfg,
		log:   cfg.Logger.With("queue", cfg.Queue),
		abort: make(chan struct{}),
		tuned: make(chan struct{}, 1),
		most:  cfg.most(),
	}
	c := cfg.concurrency()
	w.concurrency.Store(&c)
	w.slots.Store(int64(c.Fixed))
	if c.Fixed == 0 {
		w.slots.Store(int64(c.limiter().Around()))
	}
	return w, nil
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c *Config) check(b *broker.Broker) error {
	var problems []error
	wrong := func(bad bool, field, format string, args ...any) {
		if bad {
			problems = append(problems, wrongField(field, format, args...))
		}
	}
	wrong(b == nil, "broker", "no broker was given")
	wrong(c.Queue == "", "queue", "no queue is named")
	kinds := 0
	for _, given := range []bool{c.Handler != nil, c.Batch != nil, c.Jobs != nil} {
		if given {
			kinds++
		}
	}
	wrong(kinds != 1, "handler", "%d handlers were given; one of handler, batch handler and job handler is needed", kinds)
	wrong(c.Concurrency < 1 || c.Concurrency > engine.MaxReceive, "concurrency", "%d; 1 to %d are allowed", c.Concurrency, engine.MaxReceive)
	if c.Auto != nil {
		if err := c.concurrency().check(c.most()); err != nil {
			problems = append(problems, err)
		}
	}
	wrong(c.MostConcurrency < 0 || c.MostConcurrency > engine.MaxReceive, "mostConcurrency", "%d; 0 (the default) to %d are allowed", c.MostConcurrency, engine.MaxReceive)
	wrong(c.BatchMax < 1 || c.BatchMax > engine.MaxReceive, "batchMax", "%d; 1 to %d are allowed", c.BatchMax, engine.MaxReceive)
	wrong(c.BatchBytes < 1, "batchBytes", "%d; 1 or more is allowed", c.BatchBytes)
	wrong(c.BatchWait < 0 || c.BatchWait > engine.MaxWait, "batchWait", "%s; 0 to %s are allowed", c.BatchWait, engine.MaxWait)
	wrong(c.Lease < minLease || c.Lease > engine.MaxLease, "lease", "%s; %s to %s are allowed", c.Lease, minLease, engine.MaxLease)
	wrong(c.DrainTimeout < 0, "drainTimeout", "%s; 0 (the default) or more is allowed", c.DrainTimeout)
	wrong(c.CancelGrace < 0, "cancelGrace", "%s; 0 (the default) or more is allowed", c.CancelGrace)
	return errors.Join(problems...)
}

// Run consumes until ctx ends, then drains and returns:
//
//  1. ctx ends: the open receive is cut, what no handler has begun is released,
//     handlers go on, their leases are renewed. Those that ask are told
//     (forebay.Draining).
//  2. DrainTimeout later, or upon Abort: the handlers' contexts end with the cause
//     forebay.ErrDraining. What they give up is released.
//  3. A few seconds later: handlers that have not returned are left behind and
//     named in the error; what they hold is released.
//  4. The last verdicts are stored, with a time limit of their own.
//
// A released message costs no attempt. Run returns nil after a clean drain. An
// error that cannot heal, such as a closed engine, drains as well and is returned.
// It runs once; ctx's values reach the handlers.
func (w *Worker) Run(ctx context.Context) error {
	if w.started.Swap(true) {
		return forebay.Errorf(forebay.CodeInvalid, "worker: run", "a worker runs once; make another")
	}
	return newLoop(w, ctx).run(ctx)
}

// Abort makes Run end soon: it skips to step 2 of its drain. It may be called at
// any time and more than once, and does not wait.
func (w *Worker) Abort() { w.once.Do(func() { close(w.abort) }) }

// Slots tells how many handlers, or batches, run now, and how many may at once. Where that
// tunes itself, it goes to and fro a little around what is told here.
func (w *Worker) Slots() (busy, all int) { return int(w.busy.Load()), int(w.slots.Load()) }
