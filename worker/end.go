package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
)

// How a job is ended from outside, by a cancellation, its timeout or its deadline:
//
//  1. The context of its handler ends, with the cause.
//  2. The handler returns: whatever it says, the verdict is that of the cause.
//  3. It does not return within CancelGrace: the verdict is stored without it. It is
//     left behind, logged and counted; its slot stays taken until it returns, and
//     what it says then is dropped.
//
// What no handler has begun is settled at once.

// ends tells whether a cause ends a job, whatever its handler says.
func ends(cause error) bool {
	return errors.Is(cause, forebay.ErrCancelled) || errors.Is(cause, forebay.ErrTimeout) || errors.Is(cause, forebay.ErrDeadline)
}

// errExpired is the cause of a job that had expired when its turn came.
var errExpired = errors.New("the job was not begun before it expired")

// clock ends one work in time.
type clock struct {
	mu     sync.Mutex // guards all below
	timers []*time.Timer
	over   bool // the handler has returned
	ended  bool
}

// after calls f later, unless the handler has returned by then.
func (c *clock) after(d time.Duration, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.timers = append(c.timers, time.AfterFunc(d, f))
	}
}

// once is true for the first who ends the work while its handler runs.
func (c *clock) once() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.ended && !c.over
	c.ended = true
	return first
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for _, t := range c.timers {
		t.Stop()
	}
}

// limit sets the timeout and the deadline of a job that begins.
func (l *loop) limit(k *work) {
	if l.w.cfg.Batch != nil || k.items[0].d.Job == nil {
		return
	}
	d := &k.items[0].d
	if timeout := l.w.b.Timeout(&d.Message); timeout > 0 {
		k.clock.after(timeout, func() { l.end(k, forebay.ErrTimeout) })
	}
	if deadline := d.Job.Deadline; !deadline.IsZero() {
		k.clock.after(time.Until(deadline), func() { l.end(k, forebay.ErrDeadline) })
	}
}

// late is the cause for not beginning a job any more; nil: none.
func late(d *forebay.Delivery, now time.Time) error {
	switch {
	case d.Job == nil:
	case !d.Job.Deadline.IsZero() && !now.Before(d.Job.Deadline):
		return forebay.ErrDeadline
	case !d.Job.Expires.IsZero() && !now.Before(d.Job.Expires) && d.Deliveries == 1:
		return errExpired
	}
	return nil
}

// end ends the context of a handler. Anybody may call it. A batch is not ended for
// one of its items.
func (l *loop) end(k *work, cause error) {
	if l.w.cfg.Batch != nil || !k.clock.once() {
		return
	}
	k.cancel(cause)
	k.clock.after(l.w.cfg.CancelGrace, func() {
		select {
		case l.overdue <- k:
		case <-l.over:
		}
	})
}

// refuse settles what no handler has begun. Anybody may call it; the keeper sees to
// it that it is the only verdict.
func (l *loop) refuse(it *item, cause error) {
	var s forebay.Settlement
	if errors.Is(cause, errExpired) {
		s = forebay.Settlement{Receipt: it.d.Receipt, Queue: it.d.Queue, Verdict: forebay.Expired,
			Cause: forebay.Cause{Code: "expired", Message: cause.Error(), At: time.Now()}}
	} else {
		s = l.w.b.Decide(it.d, cause)
	}
	l.settler.add([]ending{{it: it, s: s, outcome: Outcome{Delivery: it.d, Verdict: s.Verdict, Cause: s.Cause}}})
}

// leave settles a job whose handler does not return although it was ended.
func (l *loop) leave(k *work) {
	if _, running := l.running[k]; !running || k.left {
		return
	}
	cause := context.Cause(k.ctx)
	if !ends(cause) { // its lease was lost before, or the worker drains
		return
	}
	k.left = true
	it := k.items[0]
	l.w.log.Warn("a handler does not return although its job was ended; it is left behind",
		"job", it.d.ID, "kind", it.d.Kind, "cause", cause, "running", time.Since(k.began).Round(time.Millisecond))
	if observe := l.w.cfg.Observe.LeftBehind; observe != nil {
		observe(it.d, cause)
	}
	l.settler.add(l.settled(k, result{
		work: k, run: time.Since(k.began),
		errs: []error{fmt.Errorf("%w; its handler has not returned", cause)},
	}))
}

// listen hears of cancellations from the broker's watcher, until quit is closed. It
// is the quick way; the sure one is what Extend answers.
func (l *loop) listen(quit <-chan struct{}) {
	watcher := l.w.b.Watcher()
	leave := watcher.Attend(l.remark)
	defer leave()
	for {
		s := watcher.Subscribe(broker.WatchFilter{Queue: l.w.cfg.Queue, Types: []forebay.HistoryType{forebay.HistoryCancelRequested}})
		if !l.hear(s, quit) {
			s.Close()
			return
		}
		l.keeper.hurry() // what was missed is told by Extend
	}
}

// hear is true when the subscription ended because it fell behind.
func (l *loop) hear(s *broker.Subscription, quit <-chan struct{}) bool {
	for {
		select {
		case e, ok := <-s.C:
			if !ok {
				return s.Lagged()
			}
			cause := forebay.ErrCancelled
			if e.Text != "" {
				cause = forebay.Cancel(e.Text)
			}
			l.keeper.end(func(it *item) bool { return it.d.ID == e.Job }, cause)
		case <-quit:
			return false
		}
	}
}

// remark writes a line into the log of a job that is at hand.
func (l *loop) remark(job, text string) {
	if v := l.keeper.voice(job); v != nil {
		v.tell(nil, &forebay.LogLine{At: time.Now(), Text: text})
	}
}
