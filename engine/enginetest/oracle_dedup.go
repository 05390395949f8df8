package enginetest

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// keyName is under which a dedup key is remembered: that of a job is one of its
// queue.
func keyName(m forebay.Message) string {
	if m.Job != nil {
		return "job key " + m.Queue + "\x00" + m.DedupKey
	}
	return "key " + m.DedupKey
}

// sameKey finds the record of the key of a job by which it is a duplicate, as its
// mode says, and the entry that gets its payload.
func (o *oracle) sameKey(m forebay.Message, now time.Time) (r *record, replaced *entry) {
	if r = o.records[keyName(m)]; r == nil || m.DedupKey == "" {
		return nil, nil
	}
	e, within := o.entry(r.id), now.Before(r.until)
	switch m.Job.Dedup {
	case forebay.DedupThrottle:
		if !within {
			return nil, nil
		}
	case forebay.DedupUntilFinished:
		if e == nil {
			return nil, nil
		}
	case forebay.DedupDebounce, forebay.DedupKeepLast:
		if e == nil || e.active(now) || m.Job.Dedup == forebay.DedupDebounce && e.deliveries > 0 {
			return nil, nil
		}
		return r, e
	default:
		if !within && e == nil {
			return nil, nil
		}
	}
	return r, nil
}

// replace gives a job that waits the payload of another.
func (o *oracle) replace(e *entry, m forebay.Message, now time.Time) {
	e.msg.Payload = bytes.Clone(m.Payload)
	if m.Job.Dedup == forebay.DedupDebounce {
		e.due = m.NotBefore
	}
	o.note(e, forebay.HistoryReplaced, e.state(now), now, nil)
}

// cancel ends a job, or asks it to stop.
func (o *oracle) cancel(id, reason string, now time.Time) engine.CancelResult {
	e := o.entry(id)
	switch {
	case e == nil || !e.job():
		if _, ok := o.tell(id, now); ok {
			return engine.CancelResult{Err: fail(forebay.CodeConflict, "job %q has finished", id)}
		}
		return engine.CancelResult{Err: fail(forebay.CodeNotFound, "no job %q", id)}
	case !e.active(now):
		c := cancelCause(reason)
		c.At = now
		o.finish(e, forebay.StateCancelled, c, nil, now)
		return engine.CancelResult{State: forebay.StateCancelled}
	case !e.stop:
		e.stop, e.reason = true, reason
		o.note(e, forebay.HistoryCancelRequested, "", now, func(ev *forebay.HistoryEvent) { ev.Text = reason })
	}
	return engine.CancelResult{State: forebay.StateActive}
}

// change changes a job that waits.
func (o *oracle) change(c engine.JobChange, now time.Time) error {
	if err := engine.CheckChange(&c, now); err != nil {
		return err
	}
	e := o.entry(c.ID)
	switch _, known := o.tell(c.ID, now); {
	case !known:
		return fail(forebay.CodeNotFound, "no job %q", c.ID)
	case e == nil || e.active(now):
		return fail(forebay.CodeConflict, "job %q does not wait", c.ID)
	case c.Priority != nil && e.chain() != "":
		return fail(forebay.CodeInvalid, "job %q is of a group", c.ID)
	}
	if c.Priority != nil {
		e.msg.Priority, e.moved = *c.Priority, true
	}
	if c.Payload != nil {
		e.msg.Payload = bytes.Clone(c.Payload)
	}
	if c.Due != nil {
		e.due = *c.Due
	}
	o.note(e, forebay.HistoryChanged, e.state(now), now, nil)
	return nil
}

// progressed notes what a running job tells.
func (o *oracle) progressed(u forebay.ProgressUpdate, now time.Time) error {
	if err := engine.CheckProgress(&u); err != nil {
		return err
	}
	e := o.holder(u.Receipt, now)
	if e == nil || !e.job() {
		return fail(forebay.CodeLeaseLost, "receipt %q is void", u.Receipt)
	}
	if u.Progress != nil {
		p := *u.Progress
		p.Data, p.At = bytes.Clone(p.Data), cmp.Or(p.At, now)
		e.progress = p
		o.note(e, forebay.HistoryProgress, "", now, func(ev *forebay.HistoryEvent) { ev.Progress = &p })
	}
	for _, line := range u.Log {
		o.note(e, forebay.HistoryLog, "", now, func(ev *forebay.HistoryEvent) { ev.Text = line.Text })
	}
	return e.stopping()
}

// stopping is what whoever holds a job hears that is to stop.
func (e *entry) stopping() error {
	if !e.stop {
		return nil
	}
	return fail(forebay.CodeCancelled, "the job is to stop: %s", e.reason)
}

// drop removes a finished job from the ledger.
func (o *oracle) drop(id string, now time.Time) error {
	if e := o.entry(id); e != nil && e.job() {
		return fail(forebay.CodeConflict, "job %q has not finished", id)
	}
	n := len(o.finished)
	o.finished = slices.DeleteFunc(o.finished, func(f *finishedJob) bool { return f.ID == id })
	if l := o.letter(id); l != nil && l.Message.Job != nil {
		o.discard(l.Seq, now)
		return nil
	}
	if len(o.finished) == n {
		return fail(forebay.CodeNotFound, "no job %q", id)
	}
	return nil
}
