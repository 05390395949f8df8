package ledger

import (
	"context"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Looking in numbers.
const (
	lookSoon   = time.Second // at a queue that has something, for what has become due
	lookSeldom = 30 * time.Second
	afterError = 5 * time.Second
	choreTime  = 5 * time.Second // of one call
	maxChores  = 4096            // that wait; what is beyond is left undone, and the remote engine's leases end it
)

// Run gives notice of jobs that wait, until ctx ends. It returns when all that it has
// started has ended.
func (e *Engine) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, q := range e.queues {
		running.Go(func() { e.sweep(ctx, q) })
		running.Go(func() { e.watch(ctx, q) })
	}
	running.Go(func() { e.work(ctx) })
	running.Wait()
	return nil
}

// sweep gives notice when somebody rings, and looks by itself for what has become due.
func (e *Engine) sweep(ctx context.Context, q *queue) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.wake:
		case <-timer.C:
		}
		next, err := e.fill(ctx, q)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			e.log.Warn("what waits cannot be counted; it is tried again", "queue", q.name, "error", err)
			next = outlook{open: true, at: time.Now().Add(afterError)}
		}
		timer.Reset(q.rest(next, time.Now()))
	}
}

// watch rings for what becomes of jobs without a call of this engine, such as a replay
// or a change. It is told, and asks nothing.
func (e *Engine) watch(ctx context.Context, q *queue) {
	for after := int64(-1); ctx.Err() == nil; {
		page, err := e.history.History(ctx, engine.HistoryQuery{
			Queue: q.name, After: after, Wait: engine.MaxWait,
			Types: []forebay.HistoryType{forebay.HistoryAdded, forebay.HistoryRetry, forebay.HistoryReleased,
				forebay.HistoryLeaseLost, forebay.HistoryReplayed, forebay.HistoryChanged},
		})
		if err != nil {
			pause(ctx, afterError) // sweep tells of it
			continue
		}
		after = page.Next
		for _, ev := range page.Events {
			q.due(ev.Due)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// causeCode is that of what cannot be a job.
const causeCode = "ledger"

// chore is something to tell the remote engine that nobody waits for.
type chore struct {
	receipts []forebay.Receipt // of notices
	lease    time.Duration     // to extend them; 0: to end them
	verdict  forebay.Verdict   // 0: Ack
	cause    error             // of Dead, and these: which message it is, and whose
	q        *queue
	unfit    *forebay.Message
}

// later leaves a chore to Run. It never blocks: a chore that is lost lets a notice come
// again that finds nothing to begin.
func (e *Engine) later(c chore) {
	if len(c.receipts) == 0 {
		return
	}
	select {
	case e.chores <- c:
	default:
	}
}

// work does chores. Those that wait and are alike are one call.
func (e *Engine) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-e.chores:
			e.do(ctx, c)
		}
	}
}

func (e *Engine) do(ctx context.Context, c chore) {
	call, cancel := context.WithTimeout(ctx, choreTime)
	defer cancel()
	var more *chore // of another kind: it ends the gathering
	for more == nil && c.plain() && len(c.receipts) < engine.MaxReceive/2 {
		select {
		case next := <-e.chores:
			if next.plain() && len(next.receipts) < engine.MaxReceive/2 {
				c.receipts = append(c.receipts, next.receipts...)
			} else {
				more = &next
			}
			continue
		default:
		}
		break
	}
	e.tell(call, c)
	if more != nil {
		e.tell(call, *more)
	}
}

// plain tells an end of notices that were of use.
func (c *chore) plain() bool { return c.lease == 0 && c.verdict == 0 }

func (e *Engine) tell(ctx context.Context, c chore) {
	if c.lease > 0 {
		_, err := e.remote.Extend(ctx, c.receipts, c.lease)
		e.untold(err)
		return
	}
	ss := make([]forebay.Settlement, len(c.receipts))
	for i, r := range c.receipts {
		ss[i] = forebay.Settlement{Receipt: r, Verdict: forebay.Ack}
		switch c.verdict {
		case forebay.Release:
			ss[i].Verdict, ss[i].After = forebay.Release, adoptAgain
		case forebay.Dead:
			ss[i].Verdict, ss[i].Cause = forebay.Dead, forebay.Cause{Code: causeCode, Message: c.cause.Error(), At: time.Now()}
		}
	}
	errs, err := e.remote.Settle(ctx, ss)
	if err == nil && c.verdict == forebay.Dead {
		err = e.bury(ctx, c, errs)
	}
	e.untold(err)
}

// untold says what could not be told; the notices come again, and go then.
func (e *Engine) untold(err error) {
	if err != nil {
		e.log.Debug("notices are not ended at the remote engine; they come again", "error", err)
	}
}
