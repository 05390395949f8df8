package sqlite

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Durability says what a nil error of Send and Settle promises.
type Durability int

const (
	DurabilityFull    Durability = iota // survives power loss: fsync before the answer
	DurabilityProcess                   // survives the end of the process, not of the machine
)

// Config of an engine. The zero value is an engine in memory.
type Config struct {
	Path           string // the database file; empty: in memory, gone with Close
	Durability     Durability
	DedupRetention time.Duration    // window of messages that name none; 0: forebay.DefaultDedupWindow
	DedupMax       int              // ids remembered at most, the oldest are forgotten first; 0: 4,000,000
	DiskReserve    int64            // bytes of disk that Send leaves free for settling; 0: 64 MiB; negative: none
	HistoryAge     time.Duration    // how long events are kept; 0: 7 days; negative: for ever
	HistoryMax     int64            // events kept at most; 0: 10,000,000
	Log            LogConfig        // of messages, after they were settled; zero: none
	MaxBytes       int64            // size of the database file at most; 0: the disk's
	Now            func() time.Time // 0: time.Now
	Logger         *slog.Logger     // nil: silent
}

const (
	defaultDedupMax    = 4_000_000
	defaultDiskReserve = 64 << 20
	defaultHistoryAge  = 7 * 24 * time.Hour
	defaultHistoryMax  = 10_000_000
	queuedCalls        = 4096     // calls that wait for the loop
	queuedBytes        = 64 << 20 // bytes of messages that wait for the loop
	groupCalls         = 1024     // calls of one commit
	groupBytes         = 8 << 20  // bytes of messages of one commit
)

// Engine is the SQLite engine. All its state belongs to one goroutine, the loop
// (see loop.go); the methods hand it requests and wait for its answers.
type Engine struct {
	cfg      Config
	log      *slog.Logger
	requests chan request        // to the loop; closed by Close after the last call
	room     *semaphore.Weighted // bytes of messages on their way to the loop, or to the disk
	flusher  *flusher            // the loop's
	sealer   sealer              // of receipts
	recovery Recovery
	queued   atomic.Int64  // messages of the calls that the loop has not taken yet
	stopping chan struct{} // closed when Close begins
	stopped  chan struct{} // closed when the loop has ended

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
	result error // of Close; written by the loop before stopped is closed
}

var (
	_ engine.Engine      = (*Engine)(nil)
	_ engine.DeadLetters = (*Engine)(nil)
	_ engine.Locator     = (*Engine)(nil)
	_ engine.Limiter     = (*Engine)(nil)
	_ engine.Sizer       = (*Engine)(nil)
	_ engine.Purger      = (*Engine)(nil)
	_ engine.Checker     = (*Engine)(nil)
	_ engine.Jobs        = (*Engine)(nil)
	_ engine.History     = (*Engine)(nil)
	_ engine.Log         = (*Engine)(nil)
)

// Open opens the engine and creates its file if there is none. What a former
// process left leased is waiting again. A damaged file is recovered into a new
// one; Recovery tells what was lost.
func Open(cfg Config) (*Engine, error) {
	if cfg.DedupRetention == 0 {
		cfg.DedupRetention = forebay.DefaultDedupWindow
	}
	if cfg.DedupMax == 0 {
		cfg.DedupMax = defaultDedupMax
	}
	if cfg.DiskReserve == 0 {
		cfg.DiskReserve = defaultDiskReserve
	}
	if cfg.HistoryAge == 0 {
		cfg.HistoryAge = defaultHistoryAge
	}
	if cfg.HistoryMax == 0 {
		cfg.HistoryMax = defaultHistoryMax
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	e := &Engine{
		cfg: cfg, log: cfg.Logger,
		requests: make(chan request, queuedCalls),
		room:     semaphore.NewWeighted(queuedBytes),
		stopping: make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	l, err := newLoop(e)
	if err != nil {
		return nil, err
	}
	e.flusher, e.sealer = l.flusher, l.sealer
	go l.run()
	return e, nil
}

// Recovery tells what opening a damaged file has saved and lost. Its Copy is
// empty when nothing was damaged.
func (e *Engine) Recovery() Recovery { return e.recovery }

// Close waits for running calls and wakes waiting ones.
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.mu.Unlock()
	if first {
		close(e.stopping)
		e.calls.Wait()
		close(e.requests)
	}
	<-e.stopped
	return e.result
}

// enter begins a call, leave ends it.
func (e *Engine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed()
	}
	e.calls.Add(1)
	return nil
}

func (e *Engine) leave() { e.calls.Done() }

func errClosed() error {
	return forebay.Errorf(forebay.CodeClosed, "sqlite", "the engine is closed")
}

// submit hands an op to the loop and waits for its answer. When ctx ends first,
// the op may still be done.
func (e *Engine) submit(ctx context.Context, o op) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	call := &call{op: o, done: make(chan error, 1), size: min(o.size(), queuedBytes), msgs: o.messages()}
	if err := e.room.Acquire(ctx, call.size); err != nil {
		return err
	}
	call.room = e.room
	queued := e.queued.Add(call.msgs)
	select {
	case e.requests <- call:
		e.flusher.handed(queued)
	case <-ctx.Done():
		e.queued.Add(-call.msgs)
		call.release()
		return ctx.Err()
	}
	select {
	case err := <-call.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Size tells the bytes of the database and its log that are in use, and the free
// ones: those of its disk, and those inside the file that messages have left.
func (e *Engine) Size(ctx context.Context) (used, free int64, err error) {
	size, err := ask(ctx, e, func(t *tx) (size [2]int64, err error) {
		size[0], size[1], err = t.l.size()
		return size, err
	})
	return size[0], size[1], err
}
