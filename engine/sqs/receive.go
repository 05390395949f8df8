package sqs

import (
	"context"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// longPoll is the longest that SQS waits.
const longPoll = 20 * time.Second

func checkReceive(r engine.Receive) error {
	bad := func(format string, args ...any) error {
		return forebay.Errorf(forebay.CodeInvalid, "sqs: receive", format, args...)
	}
	switch {
	case r.Kept:
		return unsupported("kept", "leases of SQS do not outlive this engine")
	case r.Max < 1 || r.Max > engine.MaxReceive:
		return bad("%d messages in one call; 1 to %d are allowed", r.Max, engine.MaxReceive)
	case r.Wait < 0 || r.Wait > engine.MaxWait:
		return bad("a wait of %s; 0 to %s are allowed", r.Wait, engine.MaxWait)
	case r.Lease != 0 && (r.Lease < engine.MinLease || r.Lease > engine.MaxLease):
		return bad("a lease of %s; %s to %s are allowed", r.Lease, engine.MinLease, engine.MaxLease)
	}
	return engine.CheckQueue(r.Queue)
}

// Receive leases messages, as package engine says. It polls until it has some, in
// waits of 20 seconds at most; a failure is tried again inside the wait.
func (e *Engine) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	if err := checkReceive(r); err != nil {
		return nil, err
	}
	call, leave, err := e.enter(ctx, e.closing)
	if err != nil {
		return nil, err
	}
	defer leave()
	if r.Lease == 0 {
		r.Lease = forebay.DefaultLease
	}
	end := time.Now().Add(r.Wait)
	for {
		ds, err := e.attempt(call, r, max(0, time.Until(end)))
		switch left := time.Until(end); {
		case len(ds) > 0:
			return ds, nil
		case e.ended(ctx) != nil:
			return nil, e.ended(ctx)
		case err != nil && !passing(err):
			return nil, err
		case err != nil:
			wait := e.stumbled(r.Queue, err)
			if left <= 0 {
				return nil, err
			}
			pause(call, min(wait, left))
		case left <= 0:
			return nil, nil
		case left < time.Second: // SQS counts whole seconds
			pause(call, left)
			r.Wait = 0
		}
		if e.ended(ctx) != nil {
			return nil, e.ended(ctx)
		}
	}
}

// attempt polls once, or as often side by side as the queue has shown to be worth it.
func (e *Engine) attempt(ctx context.Context, r engine.Receive, left time.Duration) ([]forebay.Delivery, error) {
	q, err := e.find(ctx, r.Queue)
	if err != nil {
		return nil, err
	}
	if n := min(q.polls.now(), (r.Max+maxBatch-1)/maxBatch); n > 1 {
		if ds, err := e.fill(ctx, q, r, n); len(ds) > 0 || err != nil {
			return ds, err
		}
	}
	ds, err := e.poll(ctx, q, min(r.Max, maxBatch), min(left, longPoll).Truncate(time.Second), r.Lease)
	if err != nil {
		return nil, err
	}
	e.went(q)
	full := len(ds) == maxBatch
	q.polls.adapt(1, count(full), count(len(ds) == 0))
	if full && r.Max > maxBatch {
		r.Max -= len(ds)
		more, _ := e.fill(ctx, q, r, q.polls.now()) // what fails here fails the next call
		ds = append(ds, more...)
	}
	return ds, nil
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// fillTime is how long a Receive that has messages goes on to poll for more: their
// leases run.
const fillTime = 500 * time.Millisecond

// fill polls without a wait, n times side by side and more while answers are full, each
// poll again and again: until there is enough, one comes back with less than it asked
// for, or the time is over.
func (e *Engine) fill(ctx context.Context, q *queue, r engine.Receive, n int) ([]forebay.Delivery, error) {
	f := &filling{e: e, q: q, lease: r.Lease, room: r.Max, until: time.Now().Add(fillTime)}
	f.runs = max(1, min(n, (r.Max+maxBatch-1)/maxBatch))
	for range f.runs {
		f.polls.Go(func() { f.poll(ctx) })
	}
	f.polls.Wait()
	q.polls.adapt(f.runs, f.runs-f.short, f.empty)
	if f.err != nil && len(f.ds) == 0 {
		return nil, f.err
	}
	if f.err == nil {
		e.went(q)
	}
	return f.ds, nil
}

// filling is what the polls of one fill share.
type filling struct {
	e     *Engine
	q     *queue
	lease time.Duration
	until time.Time
	polls sync.WaitGroup

	mu    sync.Mutex // guards those below
	ds    []forebay.Delivery
	room  int // messages that may still be asked for
	runs  int // polls side by side
	short int // of them, those that ended with less than they asked for
	empty int // with nothing
	over  bool
	err   error
}

func (f *filling) poll(ctx context.Context) {
	for ctx.Err() == nil {
		limit := f.take()
		if limit == 0 {
			return
		}
		ds, err := f.e.poll(ctx, f.q, limit, 0, f.lease)
		if f.add(limit, ds, err) {
			f.polls.Go(func() { f.poll(ctx) })
		}
	}
}

// take gives how many messages to ask for next; 0: no more.
func (f *filling) take() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || time.Now().After(f.until) {
		return 0
	}
	n := min(maxBatch, f.room)
	f.room -= n
	return n
}

// add takes an answer, and tells whether one more poll beside the others is worth it.
func (f *filling) add(limit int, ds []forebay.Delivery, err error) (more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ds = append(f.ds, ds...)
	f.room += limit - len(ds)
	switch {
	case err != nil:
		f.err, f.over = err, true
	case len(ds) < limit:
		f.short, f.over = f.short+1, true
		f.empty += count(len(ds) == 0)
	case !f.over && f.runs < f.q.polls.most && f.room > f.runs*maxBatch:
		f.runs++
		return true
	}
	return false
}

// stumbled says once that polling fails, and how long to wait.
func (e *Engine) stumbled(name string, err error) time.Duration {
	q := e.look(name)
	if q == nil {
		return time.Second
	}
	wait, isFirst := q.polls.failed(err)
	if isFirst {
		e.log.Warn("receiving from SQS fails; it is tried again", "queue", name, "code", forebay.CodeOf(err), "error", err)
	}
	return wait
}

func (e *Engine) went(q *queue) {
	if q.polls.worked() {
		e.log.Info("receiving from SQS works again", "queue", q.name)
	}
}
