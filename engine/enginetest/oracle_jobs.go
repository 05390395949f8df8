package enginetest

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// ledger is what the oracle knows of jobs beyond messages.
type ledger struct {
	events   []forebay.HistoryEvent
	finished []*finishedJob // in the order of finishing
	last     int64          // number of the last one that finished
	dead     map[int64]forebay.Job
	turns    map[string]int64 // by queue and tenant: number of the last hand-out
	turn     int64
}

type finishedJob struct {
	forebay.Job
	seq int64
}

func newLedger() ledger {
	return ledger{dead: make(map[int64]forebay.Job), turns: make(map[string]int64)}
}

func (e *entry) job() bool { return e.msg.Job != nil }

// chain names what runs one after the other: a group, or jobs of a key of which
// the last is kept.
func (e *entry) chain() string {
	if e.msg.Group == "" && e.job() && e.msg.Job.Dedup == forebay.DedupKeepLast {
		return "\x00" + e.msg.DedupKey
	}
	return e.msg.Group
}

func turnName(m *forebay.Message) string {
	return m.Queue + "\x00" + tenantOf(m)
}

func tenantOf(m *forebay.Message) string {
	if m.Job == nil {
		return ""
	}
	return m.Job.Tenant
}

// state is that of a message that is there.
func (e *entry) state(now time.Time) forebay.State {
	switch {
	case e.active(now):
		return forebay.StateActive
	case now.Before(e.due): // the delay of its queue is not the job's
		return forebay.StateDelayed
	}
	return forebay.StateWaiting
}

// note writes an event of a job.
func (o *oracle) note(e *entry, typ forebay.HistoryType, state forebay.State, now time.Time, more func(ev *forebay.HistoryEvent)) {
	if !e.job() {
		return
	}
	ev := forebay.HistoryEvent{
		Seq: int64(len(o.events) + 1), At: now, Type: typ, Job: e.msg.ID, Queue: e.msg.Queue, Kind: e.msg.Kind, Attempt: e.attempts + 1, State: state,
	}
	if state == forebay.StateDelayed {
		ev.Due = e.due
	}
	if more != nil {
		more(&ev)
	}
	o.events = append(o.events, ev)
}

func because(c forebay.Cause) func(ev *forebay.HistoryEvent) {
	return func(ev *forebay.HistoryEvent) { ev.Cause = &c }
}

// tell gives what the ledger knows of a job.
func (o *oracle) tell(id string, now time.Time) (forebay.Job, bool) {
	if e := o.entry(id); e != nil {
		return e.told(now), e.job()
	}
	if l := o.letter(id); l != nil {
		j, ok := o.dead[l.Seq]
		return j, ok
	}
	for _, f := range slices.Backward(o.finished) {
		if f.ID == id {
			return f.Job, true
		}
	}
	return forebay.Job{}, false
}

func (e *entry) told(now time.Time) forebay.Job {
	j := forebay.Job{
		Message: e.msg, State: e.state(now), Attempts: e.attempts, Deliveries: e.deliveries, Progress: e.progress,
		SentAt: e.sentAt, StartedAt: e.started, Failures: slices.Clone(e.failures), CancelRequested: e.stop,
	}
	if j.State == forebay.StateDelayed {
		j.Due = e.due
	}
	return j
}

func deadlineCause() forebay.Cause {
	return forebay.Cause{Code: "deadline", Message: "its deadline has passed"}
}

func cancelCause(reason string) forebay.Cause {
	return forebay.Cause{Code: string(forebay.CodeCancelled), Message: cmp.Or(reason, "cancelled on request")}
}

// settleJob ends the lease of a job by a valid settlement.
func (o *oracle) settleJob(e *entry, s forebay.Settlement, now time.Time) {
	if s.Verdict == forebay.Retry || s.Verdict == forebay.Release {
		failed := s.Verdict == forebay.Retry
		switch late := e.msg.Job.Deadline; {
		case e.stop:
			s.Verdict, s.Cause = forebay.Cancelled, cancelCause(e.reason)
		case !late.IsZero() && !late.After(now):
			s.Verdict, s.Cause = forebay.Dead, deadlineCause()
			if !failed {
				e.attempts-- // bury adds one
			}
		}
	}
	if s.Cause.At.IsZero() {
		s.Cause.At = now
	}
	e.receipt, e.until, e.due = "", time.Time{}, now.Add(s.After)
	switch s.Verdict {
	case forebay.Ack:
		o.finish(e, forebay.StateCompleted, forebay.Cause{}, s.Result, now)
	case forebay.Cancelled:
		o.finish(e, forebay.StateCancelled, s.Cause, nil, now)
	case forebay.Expired:
		o.finish(e, forebay.StateExpired, s.Cause, nil, now)
	case forebay.Dead:
		e.uncharge(s)
		o.bury(e, s.Cause, now)
	case forebay.Release:
		e.deliveries--
		o.note(e, forebay.HistoryReleased, e.state(now), now, nil)
	case forebay.Retry:
		s.Cause.Attempt, s.Cause.Started = e.attempts+1, e.started
		o.note(e, forebay.HistoryRetry, e.state(now), now, because(s.Cause))
		e.fail(s.Cause)
	}
}

func (e *entry) fail(c forebay.Cause) {
	e.attempts++
	e.failures = append(e.failures, c)
	e.failures = e.failures[max(0, len(e.failures)-forebay.MaxFailures):]
}

// finish lets a job leave for the ledger.
func (o *oracle) finish(e *entry, state forebay.State, c forebay.Cause, result []byte, now time.Time) {
	count := o.count(e.msg.Queue)
	typ := forebay.HistoryCompleted
	switch state {
	case forebay.StateCancelled:
		typ = forebay.HistoryCancelled
		count.Cancelled++
	case forebay.StateExpired:
		typ = forebay.HistoryExpired
		count.Expired++
	default:
		count.Completed++
	}
	o.note(e, typ, state, now, func(ev *forebay.HistoryEvent) {
		if ev.Result = bytes.Clone(result); state != forebay.StateCompleted {
			ev.Cause = &c
		}
	})
	o.remove(e)
	if e.msg.Job.Keep.Finished.None {
		return
	}
	o.last++
	j := e.told(now)
	j.State, j.Cause, j.Result, j.FinishedAt, j.Due, j.CancelRequested = state, c, bytes.Clone(result), now, time.Time{}, false
	o.finished = append(o.finished, &finishedJob{j, o.last})
}

// bury makes a message a dead letter, one attempt charged.
func (o *oracle) bury(e *entry, c forebay.Cause, now time.Time) {
	if e.job() {
		o.note(e, forebay.HistoryDead, forebay.StateDead, now, because(c))
	}
	o.remove(e)
	o.deadSeq++
	e.attempts++
	print, _ := engine.DeadFingerprint(e.msg.Queue, e.msg.Kind, c)
	o.letters = append(o.letters, forebay.DeadLetter{
		Seq: o.deadSeq, Message: e.msg, Cause: c, Attempts: e.attempts, Deliveries: e.deliveries,
		Failures: e.failures, SentAt: e.sentAt, DiedAt: now, Fingerprint: print,
	})
	if e.job() {
		j := e.told(now)
		j.State, j.Cause, j.FinishedAt, j.DeadSeq, j.Due, j.CancelRequested = forebay.StateDead, c, now, o.deadSeq, time.Time{}, false
		o.dead[o.deadSeq] = j
	}
}

// comes tells when time alone will do something to a job, and what.
func (o *oracle) comes(e *entry) (at time.Time, do func(at time.Time)) {
	if !e.job() {
		return time.Time{}, nil
	}
	first := func(t time.Time, f func(at time.Time)) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at, do = t, f
		}
	}
	if e.receipt != "" {
		first(e.until, func(at time.Time) { o.lapse(e, at) })
		return at, do
	}
	if e.deliveries == 0 {
		first(e.msg.Job.Expires, func(at time.Time) {
			o.finish(e, forebay.StateExpired, forebay.Cause{Code: "expired", Message: "not begun in time", At: at}, nil, at)
		})
	}
	first(e.msg.Job.Deadline, func(at time.Time) {
		e.attempts--
		o.bury(e, deadlineCause(), at)
	})
	return at, do
}

// lapse ends the lease of a job without a verdict.
func (o *oracle) lapse(e *entry, now time.Time) {
	late := e.msg.Job.Deadline
	if e.stop || !late.IsZero() && !late.After(now) {
		o.settleJob(e, forebay.Settlement{Verdict: forebay.Release}, now)
		return
	}
	e.receipt, e.until = "", time.Time{}
	o.note(e, forebay.HistoryLeaseLost, forebay.StateWaiting, now, nil)
}

// nextChange is when time alone will do something to any job; zero: never.
func (o *oracle) nextChange() (next time.Time, do func(at time.Time)) {
	for _, e := range o.entries {
		if at, f := o.comes(e); f != nil && (next.IsZero() || at.Before(next)) {
			next, do = at, f
		}
	}
	return next, do
}

// sweep does what time alone has done until now. It tells whether there was any.
func (o *oracle) sweep(now time.Time) (any bool) {
	for {
		at, do := o.nextChange()
		if do == nil || at.After(now) {
			break
		}
		do(at)
		any = true
	}
	o.retain(now)
	return any
}

// retain drops what has been kept long enough.
func (o *oracle) retain(now time.Time) {
	newer := make(map[string]int)
	gone := func(queue string, k forebay.Keep, since time.Time) bool {
		drop := k.Count > 0 && newer[queue] >= k.Count || k.Age > 0 && now.Sub(since) >= k.Age
		newer[queue]++
		return drop
	}
	kept := o.finished[:0:0]
	for _, f := range slices.Backward(o.finished) {
		if !gone(f.Queue, f.Job.Job.Keep.Finished, f.FinishedAt) {
			kept = append(kept, f)
		}
	}
	slices.Reverse(kept)
	o.finished = kept
	clear(newer)
	for _, l := range slices.Backward(slices.Clone(o.letters)) {
		if j, ok := o.dead[l.Seq]; ok && gone(j.Queue, j.Job.Keep.Dead, l.DiedAt) {
			o.discard(l.Seq, now)
		}
	}
}
