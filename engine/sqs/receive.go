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

// fill polls n and more side by side without a wait, as long as they come back full.
func (e *Engine) fill(ctx context.Context, q *queue, r engine.Receive, n int) ([]forebay.Delivery, error) {
	var ds []forebay.Delivery
	for begin := time.Now(); len(ds) < r.Max && ctx.Err() == nil; {
		n = min(n, (r.Max-len(ds)+maxBatch-1)/maxBatch)
		got, full, empty, err := e.beside(ctx, q, r, n, r.Max-len(ds))
		ds = append(ds, got...)
		if err != nil {
			if len(ds) > 0 {
				return ds, nil
			}
			return nil, err
		}
		e.went(q)
		q.polls.adapt(n, full, empty)
		if full < n || time.Since(begin) > fillTime {
			break
		}
		n = q.polls.now()
	}
	return ds, nil
}

// beside makes n polls at once, for at most most messages together.
func (e *Engine) beside(ctx context.Context, q *queue, r engine.Receive, n, most int) (ds []forebay.Delivery, full, empty int, err error) {
	type answer struct {
		ds  []forebay.Delivery
		err error
	}
	answers := make([]answer, n)
	var all sync.WaitGroup
	for i := range n {
		limit := min(maxBatch, most-i*maxBatch)
		all.Go(func() {
			a := &answers[i]
			a.ds, a.err = e.poll(ctx, q, limit, 0, r.Lease)
		})
	}
	all.Wait()
	for i, a := range answers {
		ds = append(ds, a.ds...)
		full += count(len(a.ds) == min(maxBatch, most-i*maxBatch))
		empty += count(len(a.ds) == 0 && a.err == nil)
		if a.err != nil {
			err = a.err
		}
	}
	return ds, full, empty, err
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
