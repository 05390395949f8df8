package enginetest

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Short words for the cases about jobs.

// job makes a job for testQueue; each change alters it.
func job(id string, changes ...func(*forebay.Message)) forebay.Message {
	m := msg(id)
	m.Payload = fmt.Appendf(nil, `{"of":%q}`, id)
	m.Job = &forebay.JobOptions{}
	for _, change := range changes {
		change(&m)
	}
	return m
}

// opts alters the options of a job.
func opts(f func(o *forebay.JobOptions)) func(*forebay.Message) {
	return func(m *forebay.Message) { f(m.Job) }
}

func expires(at time.Time) func(*forebay.Message) {
	return opts(func(o *forebay.JobOptions) { o.Expires = at })
}

func deadline(at time.Time) func(*forebay.Message) {
	return opts(func(o *forebay.JobOptions) { o.Deadline = at })
}

// add sends new jobs with these ids to testQueue.
func (v *env) add(ids ...string) {
	v.Helper()
	for i, r := range v.send(jobsOf(ids)...) {
		v.fresh(r, ids[i])
	}
}

func jobsOf(ids []string, changes ...func(*forebay.Message)) []forebay.Message {
	msgs := make([]forebay.Message, len(ids))
	for i, id := range ids {
		msgs[i] = job(id, changes...)
	}
	return msgs
}

// job tells what the ledger knows of a job that must be there.
func (v *env) job(id string) forebay.Job {
	v.Helper()
	j, err := able[engine.Jobs](v).Job(v.ctx, id)
	if err != nil {
		v.failf("job %q: %v", id, err)
	}
	if j.ID != id || j.Job == nil {
		v.failf("job %q is told as %+v", id, j)
	}
	return j
}

// is wants jobs in a state.
func (v *env) is(state forebay.State, ids ...string) {
	v.Helper()
	for _, id := range ids {
		if j := v.job(id); j.State != state {
			v.failf("job %q is %s, want %s (cause %+v)", id, j.State, state, j.Cause)
		}
	}
}

// noJob wants jobs unknown to the ledger.
func (v *env) noJob(ids ...string) {
	v.Helper()
	for _, id := range ids {
		if j, err := able[engine.Jobs](v).Job(v.ctx, id); forebay.CodeOf(err) != forebay.CodeNotFound {
			v.failf("job %q gave %+v, %v; want code not_found", id, j, err)
		}
	}
}

// cancel gives the answers of one call.
func (v *env) cancel(reason string, ids ...string) []engine.CancelResult {
	v.Helper()
	res, err := able[engine.Jobs](v).Cancel(v.ctx, ids, reason)
	if err != nil {
		v.failf("cancel: %v", err)
	}
	if len(res) != len(ids) {
		v.failf("cancel of %d gave %d answers", len(ids), len(res))
	}
	return res
}

// cancelled cancels and wants these states, all without an error.
func (v *env) cancelled(state forebay.State, ids ...string) {
	v.Helper()
	for i, r := range v.cancel("no more wanted", ids...) {
		if r.Err != nil || r.State != state {
			v.failf("cancel of %q gave %+v, want state %s", ids[i], r, state)
		}
	}
}

func (v *env) change(changes ...engine.JobChange) []error {
	v.Helper()
	errs, err := able[engine.Jobs](v).Change(v.ctx, changes)
	if err != nil {
		v.failf("change: %v", err)
	}
	if len(errs) != len(changes) {
		v.failf("change of %d gave %d answers", len(changes), len(errs))
	}
	return errs
}

func (v *env) progress(updates ...forebay.ProgressUpdate) []error {
	v.Helper()
	errs, err := able[engine.Jobs](v).Progress(v.ctx, updates)
	if err != nil {
		v.failf("progress: %v", err)
	}
	if len(errs) != len(updates) {
		v.failf("progress of %d gave %d answers", len(updates), len(errs))
	}
	return errs
}

func (v *env) removeJobs(ids ...string) []error {
	v.Helper()
	errs, err := able[engine.Jobs](v).Remove(v.ctx, ids)
	if err != nil {
		v.failf("remove: %v", err)
	}
	if len(errs) != len(ids) {
		v.failf("remove of %d gave %d answers", len(ids), len(errs))
	}
	return errs
}

// endAs ends a delivery, with a cause where the verdict has one.
func (v *env) endAs(d forebay.Delivery, verdict forebay.Verdict) {
	v.Helper()
	s := forebay.Settlement{Receipt: d.Receipt, Verdict: verdict}
	if verdict != forebay.Ack && verdict != forebay.Release {
		s.Cause = cause(verdict.String())
	}
	v.codes(v.settle(s), "")
}

// events reads all events that a query asks for, page by page.
func (v *env) events(q engine.HistoryQuery) []forebay.HistoryEvent {
	v.Helper()
	h := able[engine.History](v)
	var all []forebay.HistoryEvent
	for {
		page, err := h.History(v.ctx, q)
		if err != nil {
			v.failf("history %+v: %v", q, err)
		}
		all = append(all, page.Events...)
		if !page.More {
			return all
		}
		if page.Next <= q.After {
			v.failf("history after %d says more after %d", q.After, page.Next)
		}
		q.After = page.Next
	}
}

// story wants these events of a job, in this order, and gives them.
func (v *env) story(id string, want ...forebay.HistoryType) []forebay.HistoryEvent {
	v.Helper()
	events := v.events(engine.HistoryQuery{Job: id})
	got := make([]forebay.HistoryType, len(events))
	for i, e := range events {
		got[i] = e.Type
	}
	if !slices.Equal(got, want) {
		v.failf("the history of %q is %v, want %v", id, got, want)
	}
	return events
}

// near wants a moment between two others.
func (v *env) near(what string, got, from, to time.Time) {
	v.Helper()
	slack := v.unit / 2 // a store may keep milliseconds, and its clock need not be ours
	if got.Before(from.Add(-slack)) || got.After(to.Add(slack)) {
		v.failf("%s is %v, want it between %v and %v", what, got, from, to)
	}
}

// sameJob wants two tellings of a job to agree on all that does not move by itself.
func (v *env) sameJob(got, want forebay.Job) {
	v.Helper()
	v.same(got.Message, want.Message)
	v.sameCause(got.Cause, want.Cause)
	if got.State != want.State || got.Attempts != want.Attempts || got.Deliveries != want.Deliveries ||
		!got.SentAt.Equal(want.SentAt) || !got.FinishedAt.Equal(want.FinishedAt) || !got.Due.Equal(want.Due) ||
		!bytes.Equal(got.Result, want.Result) || got.DeadSeq != want.DeadSeq || len(got.Failures) != len(want.Failures) {
		v.failf("job %+v was told before as %+v", got, want)
	}
	for i := range got.Failures {
		v.sameCause(got.Failures[i], want.Failures[i])
	}
}
