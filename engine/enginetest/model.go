package enginetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Model is an engine in memory that is right by being simple: each call goes
// through all messages. It judges nothing and is fast at nothing; it is for tests
// that want a real engine without a store, and it shows that the suite can be
// passed. Its clock is time.Now, so that it lives in a synctest bubble.
type Model struct {
	mu      sync.Mutex // guards all below
	o       *oracle
	changed chan struct{} // closed and replaced whenever something may have become free
	closed  bool
	receipt int64 // the last one given, by this engine or one before it
}

var (
	_ engine.Engine      = (*Model)(nil)
	_ engine.DeadLetters = (*Model)(nil)
	_ engine.Locator     = (*Model)(nil)
	_ engine.Limiter     = (*Model)(nil)
	_ engine.Delayer     = (*Model)(nil)
	_ engine.Sizer       = (*Model)(nil)
	_ engine.Checker     = (*Model)(nil)
	_ engine.Purger      = (*Model)(nil)
)

// NewModel gives an empty engine.
func NewModel() *Model {
	return &Model{o: newOracle(), changed: make(chan struct{})}
}

// Reopen closes the engine and gives another one with what it had stored.
func (e *Model) Reopen() *Model {
	_ = e.Close() // it cannot fail
	e.mu.Lock()
	defer e.mu.Unlock()
	e.o.restart(time.Now())
	return &Model{o: e.o, changed: make(chan struct{}), receipt: e.receipt}
}

func fail(code forebay.Code, format string, args ...any) error {
	return forebay.Errorf(code, "model", format, args...)
}

// enter begins a call: it takes the lock, or says why not.
func (e *Model) enter(ctx context.Context) (now time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return time.Time{}, fail(forebay.CodeClosed, "closed")
	}
	now = time.Now()
	if e.o.sweep(now) {
		e.wake()
	}
	return now, nil
}

// wake tells all who wait to look again. The lock must be held.
func (e *Model) wake() {
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *Model) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if len(msgs) > engine.MaxSend {
		return nil, fail(forebay.CodeInvalid, "%d messages in one call", len(msgs))
	}
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	res := make([]forebay.SendResult, len(msgs))
	for i, m := range msgs {
		if err := engine.CheckMessage(&m, now); err != nil {
			res[i] = forebay.SendResult{ID: m.ID, Err: err}
			continue
		}
		res[i] = e.o.send(m, now)
	}
	e.wake()
	return res, nil
}

func (e *Model) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	lease := r.Lease
	if lease == 0 {
		lease = forebay.DefaultLease
	}
	if r.Queue == "" || r.Max < 1 || r.Max > engine.MaxReceive || r.Wait < 0 || r.Wait > engine.MaxWait ||
		lease < engine.MinLease || lease > engine.MaxLease {
		return nil, fail(forebay.CodeInvalid, "receive %+v is out of bounds", r)
	}
	end := time.Now().Add(r.Wait)
	for {
		now, err := e.enter(ctx)
		if err != nil {
			return nil, err
		}
		ds := e.claim(r, lease, now)
		changed, look := e.changed, e.lookAgain(r.Queue, now)
		e.mu.Unlock()
		if len(ds) > 0 || !now.Before(end) {
			return ds, nil
		}
		if look.IsZero() || look.After(end) {
			look = end
		}
		timer := time.NewTimer(look.Sub(now))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (e *Model) claim(r engine.Receive, lease time.Duration, now time.Time) []forebay.Delivery {
	var batch []*entry
	var ds []forebay.Delivery
	for len(batch) < r.Max {
		best := e.o.next(r.Queue, batch, now)
		if best == nil {
			break
		}
		e.receipt++
		batch = append(batch, best)
		ds = append(ds, e.o.lease(best, forebay.Receipt(fmt.Sprint("r", e.receipt)), now.Add(lease), now))
		best.kept = r.Kept
	}
	return ds
}

// lookAgain is the next moment at which time alone may free a message.
func (e *Model) lookAgain(queue string, now time.Time) time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, m := range e.o.entries {
		if m.msg.Queue != queue {
			continue
		}
		sooner(m.freeAt())
		sooner(m.until)
		if m.job() {
			sooner(m.msg.Job.Expires)
			sooner(m.msg.Job.Deadline)
		}
		l := e.o.limits[queue]
		if wait := e.o.untilToken(queue, "", l.Rate, now); wait > 0 {
			sooner(now.Add(wait))
		}
		if wait := e.o.untilToken(queue, m.msg.LimitKey, l.KeyRate, now); wait > 0 && m.msg.LimitKey != "" {
			sooner(now.Add(wait))
		}
	}
	return next
}

func (o *oracle) untilToken(queue, key string, r engine.Rate, now time.Time) time.Duration {
	lacking := 1 - o.tokens(queue, key, r, now)
	if lacking <= 0 {
		return 0
	}
	per := r.Per
	if per == 0 {
		per = time.Second
	}
	return time.Duration(lacking * float64(per) / float64(r.Count)).Round(time.Microsecond)
}

func (e *Model) Extend(ctx context.Context, receipts []forebay.Receipt, lease time.Duration) ([]error, error) {
	if err := checkExtend(lease); err != nil {
		return nil, err
	}
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	errs := make([]error, len(receipts))
	for i, r := range receipts {
		if m := e.o.holder(r, now); m != nil {
			m.until = now.Add(lease)
			errs[i] = m.stopping()
		} else {
			errs[i] = fail(forebay.CodeLeaseLost, "receipt %q is void", r)
		}
	}
	e.wake() // a lease may have become shorter
	return errs, nil
}

func checkExtend(lease time.Duration) error {
	if lease != 0 && lease < engine.MinLease || lease > engine.MaxLease {
		return fail(forebay.CodeInvalid, "a lease of %v is out of bounds", lease)
	}
	return nil
}

func (e *Model) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	errs := make([]error, len(ss))
	for i, s := range ss {
		errs[i] = e.settle(s, now)
	}
	e.wake()
	return errs, nil
}

func (e *Model) settle(s forebay.Settlement, now time.Time) error {
	m := e.o.holder(s.Receipt, now)
	if m == nil {
		return fail(forebay.CodeLeaseLost, "receipt %q is void", s.Receipt)
	}
	if s.Verdict < forebay.Ack || s.Verdict > forebay.Expired || s.After < 0 || s.After > forebay.MaxDelay {
		return fail(forebay.CodeInvalid, "verdict %v after %v is out of bounds", s.Verdict, s.After)
	}
	if m.job() && s.Verdict == forebay.Ack {
		if err := engine.CheckResult(s.Result); err != nil {
			return err
		}
	}
	for _, n := range s.Next {
		if err := engine.CheckMessage(&n, now); err != nil {
			return err
		}
	}
	e.o.settle(m, s, now)
	return nil
}

func (e *Model) Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	if len(queues) == 0 {
		for _, m := range e.o.entries {
			queues = append(queues, m.msg.Queue)
		}
		for _, l := range e.o.letters {
			queues = append(queues, l.Message.Queue)
		}
		for q := range e.o.counts {
			queues = append(queues, q)
		}
		slices.Sort(queues)
		queues = slices.Compact(queues)
	}
	out := make([]forebay.QueueStats, len(queues))
	for i, q := range queues {
		out[i] = e.o.stats(q, now)
	}
	return out, nil
}

func (e *Model) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.closed = true
		e.wake()
	}
	return nil
}
