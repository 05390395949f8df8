package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// wire tells other processes that something came, and hears of it from them. Signals are
// hints: a message is found without them, only later.
//
// NOTIFY takes a lock of the whole database until its commit is done. So it is never a part
// of the transactions that store: one connection tells of many of them at once, after them,
// with a commit that waits for no disk. Where the connection that listens is away, or a
// pooler between does not let it hear, receives look by themselves more often.
type wire struct {
	e *Engine

	mu    sync.Mutex // guards all below
	due   hint
	hears bool
	has   chan struct{} // there is something to tell, one is kept
}

// hint is what is told.
type hint struct {
	From   string          `json:"f"`
	Queues map[string]bool `json:"q,omitempty"`
	News   bool            `json:"n,omitempty"`
}

const (
	tellGap    = 5 * time.Millisecond // from one telling to the next
	mostQueues = 50                   // of one telling; NOTIFY takes 8000 bytes
	lookHeard  = 15 * time.Second     // a receive looks by itself, where signals are heard
	lookDeaf   = time.Second          // and where they are not
)

func newWire(e *Engine) *wire {
	return &wire{e: e, has: make(chan struct{}, 1), due: hint{Queues: make(map[string]bool)}}
}

// recheck is when a waiting receive looks by itself.
func (r *wire) recheck() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hears || r.e.quiet {
		return lookHeard
	}
	return lookDeaf
}

// signal wakes who waits, here at once and elsewhere soon.
func (e *Engine) signal(queues map[string]bool, news bool) {
	e.desks.signal(queues)
	if news {
		e.news.signal()
	}
	if e.quiet || len(queues) == 0 && !news {
		return
	}
	e.wire.mu.Lock()
	for name := range queues {
		e.wire.due.Queues[name] = true
	}
	e.wire.due.News = e.wire.due.News || news
	e.wire.mu.Unlock()
	select {
	case e.wire.has <- struct{}{}:
	default:
	}
}

// channel has at most the 63 bytes that the name of one may have.
func (r *wire) channel() string {
	name := "forebay_" + r.e.cfg.Schema
	if len(name) > 63 {
		return fmt.Sprintf("forebay_%08x", uint32(r.e.class))
	}
	return name
}

// take gives what one telling tells.
func (r *wire) take() (h hint, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h = hint{From: r.e.epoch, News: r.due.News, Queues: make(map[string]bool)}
	for name := range r.due.Queues {
		if len(h.Queues) == mostQueues {
			break
		}
		h.Queues[name] = true
		delete(r.due.Queues, name)
	}
	r.due.News = false
	return h, len(r.due.Queues) > 0
}

// tell tells others until the engine is closed.
func (r *wire) tell() {
	for {
		select {
		case <-r.e.closing:
			return
		case <-r.has:
		}
		for more := true; more; {
			var h hint
			h, more = r.take()
			ctx, cancel := context.WithTimeout(context.Background(), r.e.cfg.Timeout)
			b := &pgx.Batch{}
			b.Queue("BEGIN")
			b.Queue("SET LOCAL synchronous_commit = off")
			b.Queue(`SELECT pg_notify($1, $2)`, r.channel(), string(encode(h)))
			b.Queue("COMMIT")
			_ = r.e.pool.SendBatch(ctx, b).Close() // what is not told is found later
			cancel()
		}
		select {
		case <-r.e.closing:
			return
		case <-time.After(tellGap):
		}
	}
}

// listen hears until the engine is closed.
func (r *wire) listen() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.e.running.Go(func() {
		<-r.e.closing
		cancel()
	})
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		began := time.Now()
		_ = r.hear(ctx) // it is tried again, and receives look by themselves meanwhile
		r.mu.Lock()
		r.hears = false
		r.mu.Unlock()
		r.e.desks.signalAll() // what was told meanwhile nobody heard
		r.e.news.signal()
		if time.Since(began) > time.Minute {
			wait = 100 * time.Millisecond
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// hear is one connection that listens. It counts as one that hears once it has heard.
func (r *wire) hear(ctx context.Context) error {
	within, done := context.WithTimeout(ctx, r.e.cfg.Timeout)
	defer done()
	conn, err := pgx.ConnectConfig(within, r.e.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(within)) }()
	if _, err := conn.Exec(within, "LISTEN "+pgx.Identifier{r.channel()}.Sanitize()); err != nil {
		return err
	}
	r.e.signal(nil, true) // whether this is heard shows whether anything is
	for {
		within, done := context.WithTimeout(ctx, time.Minute)
		n, err := conn.WaitForNotification(within)
		done()
		switch {
		case err != nil && ctx.Err() == nil && within.Err() != nil && !conn.IsClosed():
			if err := conn.Ping(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		r.heard(n.Payload)
	}
}

func (r *wire) heard(payload string) {
	r.mu.Lock()
	r.hears = true
	r.mu.Unlock()
	var h hint
	if json.Unmarshal([]byte(payload), &h) != nil {
		return // of somebody else
	}
	r.e.desks.signal(h.Queues)
	if h.News {
		r.e.news.signal()
	}
}
