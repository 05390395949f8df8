package outbox

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Forwarding in numbers.
const (
	forwardBatch = 500              // messages of one Send
	forwardLease = 2 * time.Minute  // longer than ForwardTimeout; renewed by nobody
	lookAgain    = 30 * time.Second // how often Run looks for what it has missed
)

// Run forwards what waits in the local engine, until ctx ends. It returns when all that
// it has started has ended.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.recall(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		for _, q := range e.toForward() {
			running.Go(func() { e.forward(ctx, q) })
		}
		select {
		case <-e.wake:
		case <-tick.C:
			if err := e.recount(ctx); err != nil && ctx.Err() == nil {
				e.log.Warn("what waits here cannot be counted; it is tried again", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// recall finds what a former process has left. Names that were cut are found when
// their queue is used.
func (e *Engine) recall(ctx context.Context) error {
	all, err := e.local.Stats(ctx)
	if err != nil {
		return forebay.Errorf(forebay.CodeOf(err), "outbox: run", "what waits locally: %w", err)
	}
	for _, s := range all {
		name, ours := e.ours(s.Queue)
		if !ours || s.Waiting+s.Active+s.Delayed == 0 {
			continue
		}
		if _, err := e.queue(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// toForward gives the queues that have something and that nobody forwards.
func (e *Engine) toForward() []*queue {
	e.mu.Lock()
	defer e.mu.Unlock()
	var some []*queue
	for _, q := range e.queues {
		if q.waiting > 0 && !q.busy {
			q.busy = true
			some = append(some, q)
		}
	}
	return some
}

// forward sends what waits of one queue, until nothing does.
func (e *Engine) forward(ctx context.Context, q *queue) {
	defer func() {
		e.mu.Lock()
		q.busy = false
		again := q.waiting > 0
		e.mu.Unlock()
		if again && ctx.Err() == nil {
			e.ring()
		}
	}()
	for ctx.Err() == nil {
		if !e.waitClosed(ctx, q) {
			return
		}
		ds, err := e.next(ctx, q)
		if err == nil && len(ds) > 0 {
			err = e.pass(ctx, q, ds)
		}
		switch {
		case err != nil:
			e.failed(q, time.Now(), err)
		case len(ds) == 0 && e.settled(ctx, q):
			return
		}
	}
}

// waitClosed waits until the remote engine may be asked again; false: ctx ended.
func (e *Engine) waitClosed(ctx context.Context, q *queue) bool {
	e.mu.Lock()
	wait := time.Until(q.openTill)
	if q.failures == 0 {
		wait = 0
	}
	e.mu.Unlock()
	if wait <= 0 {
		return ctx.Err() == nil
	}
	return pause(ctx, wait)
}

// next takes the oldest messages of a queue. Replayed dead letters come first.
func (e *Engine) next(ctx context.Context, q *queue) ([]forebay.Delivery, error) {
	dead, _ := e.localName(q.name, true)
	ds, err := e.takeDead(ctx, dead)
	if err != nil || len(ds) > 0 {
		return ds, err
	}
	waiting, _ := e.localName(q.name, false)
	return e.local.Receive(ctx, engine.Receive{Queue: waiting, Max: forwardBatch, Wait: time.Second, Lease: forwardLease})
}

// settled sets the count right when nothing comes: true if nothing waits.
func (e *Engine) settled(ctx context.Context, q *queue) bool {
	e.mu.Lock()
	was := q.waiting
	e.mu.Unlock()
	n, _, err := e.left(ctx, q.name)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && n == 0 && q.waiting == was {
		q.waiting = 0 // whatever was counted wrong: nothing is there
	}
	if q.waiting > 0 {
		return false
	}
	e.noBytes()
	return true
}

// noBytes forgets what was counted in bytes once nothing waits. e.mu must be held.
func (e *Engine) noBytes() {
	for _, q := range e.queues {
		if q.waiting > 0 {
			return
		}
	}
	e.bytes, e.full = 0, false
}

// pass sends messages to the remote engine and ends them here. Its error says that the
// remote engine is away.
func (e *Engine) pass(ctx context.Context, q *queue, ds []forebay.Delivery) error {
	msgs := make([]forebay.Message, len(ds))
	for i := range ds {
		msgs[i] = e.forRemote(&ds[i].Message)
		if e.replayed(&ds[i]) {
			msgs[i].Headers = maps.Clone(msgs[i].Headers)
			if msgs[i].Headers == nil {
				msgs[i].Headers = make(map[string]string, 1)
			}
			msgs[i].Headers[engine.HeaderReplayed] = strconv.FormatInt(time.Now().UnixNano(), 36)
		}
	}
	call, cancel := context.WithTimeout(ctx, e.cfg.ForwardTimeout)
	res, whole := e.remote.Send(call, msgs)
	cancel()
	err := whole
	ss := make([]forebay.Settlement, len(ds))
	var size int64
	for i, d := range ds {
		ss[i] = forebay.Settlement{Receipt: d.Receipt, Queue: d.Queue, Verdict: forebay.Ack}
		one := whole
		if whole == nil {
			one = res[i].Err
		}
		if one == nil && res[i].Duplicate && e.replayed(&d) {
			one = forebay.Errorf(forebay.CodeConflict, "outbox", "the remote engine remembers its id, and takes it no second time yet")
		}
		switch {
		case one == nil:
			size += sizeOf(&d.Message)
		case whole != nil || away(one):
			err = one
			ss[i].Verdict = forebay.Release
		default: // it will never take this one
			e.refuse(&ss[i], &d, one)
			if leaves(&ss[i]) {
				size += sizeOf(&d.Message)
			}
		}
	}
	done := e.end(ctx, ss)
	e.forget(q, int64(done), size)
	if err == nil {
		e.worked(q)
	}
	return err
}

// replayed tells whether a message was a dead letter here.
func (e *Engine) replayed(d *forebay.Delivery) bool {
	return slices.Contains(e.cfg.Own, d.Queue) || strings.HasPrefix(d.Queue, deadMark+e.cfg.Prefix)
}

// Ending in numbers.
const (
	endTimeout = 5 * time.Second // of one call, also of one that begins when ctx has ended
	endWithin  = time.Minute     // that it is tried; with ForwardTimeout less than forwardLease
	endAgain   = 100 * time.Millisecond
)

// end settles in the local engine, also while draining, and counts what has left it. A full
// disk may refuse that for a while. What is not settled at last is forwarded again when its lease
// ends, and until then all that is behind it in its group waits; so it is tried again before.
func (e *Engine) end(ctx context.Context, ss []forebay.Settlement) (left int) {
	for until, wait := time.Now().Add(endWithin), endAgain; ; wait *= 2 {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		errs, err := e.local.Settle(call, ss)
		cancel()
		if err == nil {
			return gone(ss, errs)
		}
		if wait == endAgain {
			e.log.Warn("what was forwarded is not settled here; it is tried again", "error", err)
		}
		if ctx.Err() != nil || forebay.CodeOf(err) == forebay.CodeClosed || !time.Now().Add(wait).Before(until) || !pause(ctx, wait) {
			return 0
		}
	}
}

func gone(ss []forebay.Settlement, errs []error) (left int) {
	for i := range ss {
		if errs[i] == nil && leaves(&ss[i]) {
			left++
		}
	}
	return left
}

// leaves tells whether nothing waits here of a message that is settled so.
func leaves(s *forebay.Settlement) bool { return s.Verdict != forebay.Release && len(s.Next) == 0 }

// pause waits; false: ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
