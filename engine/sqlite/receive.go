package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Bounds of one claim.
const (
	claimBytes = 32 << 20 // of bodies; the first message may go over it
	passAtOnce = 4096     // messages of locked groups that are passed over before others get their turn
)

// receive is one call of Receive: a request at first, then a waiter of its queue.
type receive struct {
	name  string
	q     *queue
	max   int
	lease time.Duration
	kept  bool
	stays bool // waits when there is nothing
	done  chan error

	together bool

	ls    *lease
	taken []taken
}

func (*receive) request() {}

// taken is one message of a claim, to be decoded by the caller.
type taken struct {
	body     []byte
	failures string
	sentAt   int64
	attempts int
	count    int // deliveries
}

// cancel takes a waiter away.
type cancel struct {
	r   *receive
	err error
}

func (*cancel) request() {}

// Receive leases messages; see engine.Engine.
func (e *Engine) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	if err := checkReceive(&r); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &receive{name: r.Queue, max: r.Max, lease: r.Lease, kept: r.Kept, together: r.Together, stays: r.Wait > 0, done: make(chan error, 1)}
	e.requests <- w // the loop always takes it
	if err := e.await(ctx, w, r.Wait); err != nil {
		return nil, err
	}
	if w.ls == nil {
		return nil, nil
	}
	return e.deliveries(w)
}

// await waits for the answer; when the wait or ctx ends first, it takes the request back.
func (e *Engine) await(ctx context.Context, w *receive, wait time.Duration) error {
	var timeout <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		timeout = t.C
	}
	select {
	case err := <-w.done:
		return err
	case <-timeout:
		e.requests <- &cancel{r: w}
	case <-ctx.Done():
		e.requests <- &cancel{r: w, err: ctx.Err()}
	}
	return <-w.done // of the claim, if that was first
}

func checkReceive(r *engine.Receive) error {
	invalid := func(field, format string, args ...any) error {
		err := forebay.Errorf(forebay.CodeInvalid, "sqlite: receive", format, args...)
		err.Field = field
		return err
	}
	if r.Lease == 0 {
		r.Lease = forebay.DefaultLease
	}
	if err := engine.CheckQueue(r.Queue); err != nil {
		return err
	}
	switch {
	case r.Max < 1 || r.Max > engine.MaxReceive:
		return invalid("max", "must be 1 to %d", engine.MaxReceive)
	case r.Wait < 0 || r.Wait > engine.MaxWait:
		return invalid("wait", "must be 0 to %s", engine.MaxWait)
	}
	return checkLease(r.Lease)
}

func checkLease(d time.Duration) error {
	if d < engine.MinLease || d > engine.MaxLease {
		err := forebay.Errorf(forebay.CodeInvalid, "sqlite", "must be %s to %s", engine.MinLease, engine.MaxLease)
		err.Field = "lease"
		return err
	}
	return nil
}

// deliveries decodes a claim, in the caller's goroutine.
func (e *Engine) deliveries(w *receive) ([]forebay.Delivery, error) {
	ds := make([]forebay.Delivery, len(w.taken))
	for i := range w.taken {
		k := &w.taken[i]
		m, err := decodeBody(k.body, w.name)
		if err != nil { // its checksum is right, so we wrote it wrong
			return nil, forebay.Errorf(forebay.CodeInternal, "sqlite: receive", "%w", err)
		}
		ds[i] = forebay.Delivery{
			Message: m, Receipt: e.sealer.receipt(w.ls.ticket(i)),
			Attempt: k.attempts + 1, Deliveries: k.count,
			SentAt: time.Unix(0, k.sentAt), LeaseUntil: time.Unix(0, w.ls.until),
			Failures: decodeFailures(k.failures),
		}
	}
	return ds, nil
}

func (l *loop) cancelReceive(c *cancel) {
	q := c.r.q
	if q == nil {
		return
	}
	for i, w := range q.waiters {
		if w == c.r {
			q.waiters = append(q.waiters[:i], q.waiters[i+1:]...)
			w.done <- c.err
			l.dropIdle(q)
			return
		}
	}
}

// turnAway answers all waiters when the engine closes.
func (l *loop) turnAway() {
	for _, q := range l.queues {
		for _, w := range q.waiters {
			w.done <- errClosed()
		}
		q.waiters = nil
	}
}

// answerShort tells those who do not wait that there is nothing now.
func (q *queue) answerShort() {
	q.waiters = slices.DeleteFunc(q.waiters, func(w *receive) bool {
		if !w.stays {
			w.done <- nil
		}
		return !w.stays
	})
}

// serve hands out what waiters can get.
func (l *loop) serve(t *tx) {
	for q := range l.dirty {
		again := false
		for len(q.waiters) > 0 {
			w := q.waiters[0]
			more, err := l.claim(t, q, w)
			again = more
			if w.ls == nil && err == nil && (w.stays || more) {
				if !more {
					q.answerShort()
				}
				break
			}
			q.waiters = q.waiters[1:]
			if w.ls == nil {
				w.done <- err
			}
		}
		if !again {
			delete(l.dirty, q)
		}
		l.dropIdle(q)
	}
}
