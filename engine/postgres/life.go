package postgres

import (
	"cmp"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// What happens to items: each function does one transition, in memory.

func (w *work) queueName(id int32) string { return w.e.queues.name(id) }

// holds tells whether a lease is live.
func (w *work) holds(it *item) bool { return !it.gone && it.state == active && it.until > w.now }

// stateOf is how the state of an item is told.
func (w *work) stateOf(it *item) forebay.State { return stateAt(it, w.now) }

func stateAt(it *item, now int64) forebay.State {
	switch {
	case it.state == active && it.until > now:
		return forebay.StateActive
	case it.state != active && it.due > now:
		return forebay.StateDelayed
	}
	return forebay.StateWaiting
}

// enqueue lets an item wait, until due.
func (w *work) enqueue(it *item) {
	w.release(it)
	it.until, it.token, it.changed = 0, 0, true
	it.alarm = it.alarmAt()
	w.soon(it.alarm)
	switch {
	case it.chain != "":
		it.state = behind // the flush lets the first of the chain come
		w.chains[lane{it.queue, it.chain}] = true
	case it.due > w.now:
		it.state = delayed
		w.soon(it.due)
	default:
		it.state = ready
		w.wake[w.queueName(it.queue)] = true
	}
}

// release lets go of what an item holds of its limit key: a place, or the right to be the
// next to take one.
func (w *work) release(it *item) {
	if it.key != "" && (it.state == active || it.state == ready && !it.fresh) {
		w.freed[lane{it.queue, it.key}]++
	}
	if it.state != active {
		return
	}
	w.wake[w.queueName(it.queue)] = true // a limit of the queue may have a place free
}

// remove takes an item away. keep: its body stays.
func (w *work) remove(it *item, keep bool) {
	w.release(it)
	it.gone, it.keptBody = true, keep
	if it.chain != "" {
		w.chains[lane{it.queue, it.chain}] = true
	}
}

// alarmAt is when time alone ends a job that is not active; 0: never.
func (it *item) alarmAt() int64 {
	at := it.deadline
	if it.deliveries == 0 && it.expires > 0 && (at == 0 || it.expires < at) {
		at = it.expires
	}
	return at
}

// lapse ends a lease without a verdict.
func (w *work) lapse(it *item) {
	if it.job && (it.extra.Stop != nil || it.deadline > 0 && it.deadline <= w.now) {
		w.settleItem(it, &forebay.Settlement{Verdict: forebay.Release})
		return
	}
	it.due = 0
	w.note(it, forebay.HistoryLeaseLost, forebay.StateWaiting)
	w.enqueue(it)
}

func deadlineCause(at time.Time) forebay.Cause {
	return forebay.Cause{Code: "deadline", Message: "its deadline has passed", At: at}
}

func cancelCause(reason string, at time.Time) forebay.Cause {
	return forebay.Cause{Code: string(forebay.CodeCancelled), Message: cmp.Or(reason, "cancelled on request"), At: at}
}

// settleItem ends the lease of an item by a valid settlement.
func (w *work) settleItem(it *item, s *forebay.Settlement) {
	verdict, cause, charge := s.Verdict, s.Cause, true
	if it.job && (verdict == forebay.Retry || verdict == forebay.Release) {
		switch {
		case it.extra.Stop != nil:
			verdict, cause = forebay.Cancelled, cancelCause(*it.extra.Stop, atMicros(w.now))
		case it.deadline > 0 && it.deadline <= w.now:
			verdict, cause, charge = forebay.Dead, deadlineCause(atMicros(w.now)), verdict == forebay.Retry
		}
	}
	if it.job && cause.At.IsZero() {
		cause.At = atMicros(w.now)
	}
	switch verdict {
	case forebay.Ack:
		w.finish(it, forebay.StateCompleted, forebay.Cause{}, s.Result)
	case forebay.Cancelled:
		w.finish(it, forebay.StateCancelled, cause, nil)
	case forebay.Expired:
		w.finish(it, forebay.StateExpired, cause, nil)
	case forebay.Dead:
		if s.Unbegun && s.Verdict == forebay.Dead {
			it.deliveries--
			charge = false
		}
		w.bury(it, cause, charge)
	case forebay.Release:
		it.deliveries--
		w.wait(it, s.After, forebay.HistoryReleased, nil)
	case forebay.Retry:
		if it.job {
			cause.Attempt, cause.Started = int(it.attempts)+1, atMicros(it.started)
		}
		w.wait(it, s.After, forebay.HistoryRetry, &cause)
		it.attempts++
		it.extra.Failures = append(slices.Clone(it.extra.Failures), cause)
		it.extra.Failures = it.extra.Failures[max(0, len(it.extra.Failures)-forebay.MaxFailures):]
	}
}

// wait lets an item wait after a hand-out.
func (w *work) wait(it *item, after time.Duration, typ forebay.HistoryType, cause *forebay.Cause) {
	it.due = 0
	if after > 0 {
		it.due = w.now + ceilMicros(after)
	}
	w.enqueue(it)
	ev := w.note(it, typ, w.stateOf(it))
	if ev != nil {
		ev.more.Cause = cause
	}
}

// finish lets an item leave; a job is kept in the ledger.
func (w *work) finish(it *item, state forebay.State, cause forebay.Cause, result []byte) {
	typ, count := forebay.HistoryCompleted, forebay.QueueStats{Completed: 1}
	switch state {
	case forebay.StateCancelled:
		typ, count = forebay.HistoryCancelled, forebay.QueueStats{Cancelled: 1}
	case forebay.StateExpired:
		typ, count = forebay.HistoryExpired, forebay.QueueStats{Expired: 1}
	}
	w.count(it.queue, count)
	if ev := w.note(it, typ, state); ev != nil {
		if state != forebay.StateCompleted {
			ev.more.Cause = &cause
		} else if len(result) <= maxToldResult {
			ev.more.Result = result
		}
	}
	if !it.job || it.meta.Job.Keep.Finished.None {
		w.remove(it, false)
		return
	}
	w.remove(it, true)
	k := it.meta.Job.Keep.Finished
	w.end(it, &ending{state: string(state), keep: k, tell: tellOf(it, cause, result)})
}

const maxToldResult = 16 << 10 // of the history

// bury makes a dead letter of an item.
func (w *work) bury(it *item, cause forebay.Cause, charge bool) {
	if ev := w.note(it, forebay.HistoryDead, forebay.StateDead); ev != nil {
		ev.more.Cause = &cause
	}
	if charge {
		it.attempts++
	}
	w.remove(it, true)
	print, text := engine.DeadFingerprint(w.queueName(it.queue), it.kind, cause)
	d := &ending{state: string(forebay.StateDead), dead: true, tell: tellOf(it, cause, nil), print: int64(print), code: plainText(cause.Code)}
	if it.job {
		d.keep = it.meta.Job.Keep.Dead
	}
	w.end(it, d)
	w.groups = append(w.groups, deadDelta{print: int64(print), queue: w.queueName(it.queue), kind: it.kind, code: d.code, text: plainText(text), n: 1, at: w.now})
}

// end keeps what has ended.
func (w *work) end(it *item, d *ending) {
	d.seq, d.queue, d.job, d.sent, d.at = it.seq, it.queue, it.job, it.sent, w.now
	if d.keep.Age > 0 {
		d.leave = w.now + ceilMicros(d.keep.Age)
		w.soon(d.leave)
	}
	if d.keep.Count > 0 {
		s, most := shelf{it.queue, d.dead}, int32(min(d.keep.Count, 1<<30))
		if was, ok := w.thin[s]; !ok || most < was {
			w.thin[s] = most
		}
	}
	w.ended = append(w.ended, d)
}

func (w *work) count(queue int32, what forebay.QueueStats) {
	w.counted = append(w.counted, counted{w.queueName(queue), what})
}
