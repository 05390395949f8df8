package enginetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func ledgerCases() []testCase {
	return []testCase{
		{name: "ledger/a job is told as it was sent", needs: Ledger, run: ledgerAsSent},
		{name: "ledger/a message that is no job has no record", needs: Ledger, run: ledgerNoJob},
		{name: "ledger/states, attempts, deliveries and times of a life", invariants: []int{5}, needs: Ledger, run: ledgerLife},
		{name: "ledger/failures have their attempt, start and time", needs: Ledger, run: ledgerFailures},
		{name: "ledger/only the last failures are kept", needs: Ledger, run: ledgerManyFailures},
		{name: "ledger/a lost lease counts the hand-out only", invariants: []int{5}, needs: Ledger, run: ledgerLeaseLost},
		{name: "ledger/progress is seen at once", needs: Ledger, run: ledgerProgress},
		{name: "ledger/progress is fenced", invariants: []int{3}, needs: Ledger, run: ledgerProgressFenced},
		{name: "ledger/progress outlives the verdict", needs: Ledger, run: ledgerProgressKept},
		{name: "ledger/outlives a restart", invariants: []int{1}, needs: Ledger, reopens: true, run: ledgerReopen},
	}
}

// fullJob has every option set.
func fullJob(id string) forebay.Message {
	at := time.Now().Truncate(time.Millisecond)
	return job(id, inGroup("g"), withLimit("l"), withKey("k"), opts(func(o *forebay.JobOptions) {
		*o = forebay.JobOptions{
			Timeout: time.Minute, Deadline: at.Add(3 * time.Hour), Expires: at.Add(2 * time.Hour),
			Backoff: forebay.Backoff{Kind: forebay.BackoffFixed, Base: time.Second, Cap: time.Minute, Jitter: 0.25},
			Dedup:   forebay.DedupUntilFinished, Tenant: "größe", Owner: "owner", Tags: []string{"b", "a", "日本"},
			Parent: "parent", Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
			Keep: forebay.Retention{Finished: forebay.Keep{Age: time.Hour, Count: 7}, Dead: forebay.Keep{Age: 2 * time.Hour, Count: 3}},
		}
	}), func(m *forebay.Message) {
		m.Headers = map[string]string{"h": "ü"}
		m.Limits = forebay.Limits{Attempts: 3, Deliveries: 9}
	})
}

func (v *env) sameOptions(got, want *forebay.JobOptions) {
	v.Helper()
	if got == nil || want == nil {
		v.failf("options %+v, want %+v", got, want)
	}
	if !got.Deadline.Equal(want.Deadline) || !got.Expires.Equal(want.Expires) || !slices.Equal(got.Tags, want.Tags) {
		v.failf("deadline, expires, tags are %v, %v, %v; want %v, %v, %v", got.Deadline, got.Expires, got.Tags, want.Deadline, want.Expires, want.Tags)
	}
	if got.Timeout != want.Timeout || got.Backoff != want.Backoff || got.Dedup != want.Dedup || got.Keep != want.Keep {
		v.failf("timeout, backoff, dedup, keep are %v, %+v, %q, %+v; want %v, %+v, %q, %+v", got.Timeout, got.Backoff, got.Dedup, got.Keep,
			want.Timeout, want.Backoff, want.Dedup, want.Keep)
	}
	if got.Tenant != want.Tenant || got.Owner != want.Owner || got.Parent != want.Parent || got.Trace != want.Trace {
		v.failf("tenant, owner, parent, trace are %q, %q, %q, %q; want %q, %q, %q, %q", got.Tenant, got.Owner, got.Parent, got.Trace,
			want.Tenant, want.Owner, want.Parent, want.Trace)
	}
}

func ledgerAsSent(v *env) {
	begin, m := time.Now(), fullJob("a")
	v.send(m)
	j := v.job("a")
	v.same(j.Message, m)
	v.sameOptions(j.Job, m.Job)
	v.near("the time of sending", j.SentAt, begin, time.Now())
	if j.State != forebay.StateWaiting || j.Attempts != 0 || j.Deliveries != 0 || !j.StartedAt.IsZero() || !j.FinishedAt.IsZero() ||
		j.Result != nil || len(j.Failures) > 0 || j.Cause.Code != "" || j.CancelRequested || j.DeadSeq != 0 {
		v.failf("a new job is told as %+v", j)
	}
	d := v.one("a")
	v.same(d.Message, m)
	v.sameOptions(d.Job, m.Job)
	v.ack(d)
	j = v.job("a")
	v.same(j.Message, m)
	v.sameOptions(j.Job, m.Job)
}

func ledgerNoJob(v *env) {
	v.put("a")
	v.add("b")
	v.noJob("a", "never sent")
	d := v.take(2)
	v.noJob("a")
	v.ack(d...)
	v.noJob("a")
	v.is(forebay.StateCompleted, "b")
	if got := v.events(engine.HistoryQuery{Job: "a"}); len(got) > 0 {
		v.failf("a message that is no job has the history %+v", got)
	}
}

// told wants where a job stands.
func (v *env) told(id string, state forebay.State, attempts, deliveries int) forebay.Job {
	v.Helper()
	j := v.job(id)
	if j.State != state || j.Attempts != attempts || j.Deliveries != deliveries {
		v.failf("%q is %s with %d failed attempts and %d hand-outs; want %s, %d, %d",
			id, j.State, j.Attempts, j.Deliveries, state, attempts, deliveries)
	}
	if final := !j.FinishedAt.IsZero(); final != state.Final() {
		v.failf("%q is %s and finished at %v", id, state, j.FinishedAt)
	}
	return j
}

func ledgerLife(v *env) {
	due := time.Now().Add(5 * v.unit)
	v.send(job("a", notBefore(due)))
	if j := v.told("a", forebay.StateDelayed, 0, 0); j.Due.Sub(due).Abs() > v.unit/2 {
		v.failf("due at %v, want %v", j.Due, due)
	}
	v.pass(6 * v.unit)
	v.told("a", forebay.StateWaiting, 0, 0)
	begin := time.Now()
	d := v.one("a")
	j := v.told("a", forebay.StateActive, 0, 1)
	v.near("the start", j.StartedAt, begin, time.Now())
	due = time.Now().Add(5 * v.unit)
	v.end(d, forebay.Retry, 5*v.unit)
	j = v.told("a", forebay.StateDelayed, 1, 1)
	v.near("the time of the retry", j.Due, due, due)
	v.pass(6 * v.unit)
	v.told("a", forebay.StateWaiting, 1, 1)
	v.end(v.one("a"), forebay.Release, 0)
	v.told("a", forebay.StateWaiting, 1, 1) // the hand-out was given back
	v.pass(v.unit)
	begin = time.Now()
	d = v.one("a")
	j = v.told("a", forebay.StateActive, 1, 2)
	v.near("the last start", j.StartedAt, begin, time.Now())
	v.pass(3 * v.unit)
	end := time.Now()
	v.ack(d)
	j = v.told("a", forebay.StateCompleted, 1, 2)
	v.near("the finish", j.FinishedAt, end, time.Now())
	v.near("the last start", j.StartedAt, begin, begin)
}

func ledgerFailures(v *env) {
	v.add("a")
	for n := 1; n <= 3; n++ {
		begin := time.Now()
		d := v.one("a")
		v.pass(2 * v.unit)
		end := time.Now()
		c := cause(fmt.Sprint("code", n))
		v.codes(v.settle(forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Retry, Cause: c, After: v.unit}), "")
		fs := v.job("a").Failures
		if len(fs) != n {
			v.failf("%d failures are told after %d", len(fs), n)
		}
		f := fs[n-1]
		v.sameCause(f, c)
		if f.Attempt != n {
			v.failf("failure %d is told as of attempt %d", n, f.Attempt)
		}
		v.near("the start of the attempt", f.Started, begin, begin)
		v.near("its failure", f.At, end, end)
		v.pass(2 * v.unit)
	}
	d := v.one("a")
	if len(d.Failures) != 3 || d.Failures[2].Attempt != 3 {
		v.failf("the delivery has failures %+v", d.Failures)
	}
	v.ack(d)
	if fs := v.job("a").Failures; len(fs) != 3 {
		v.failf("%d failures are told of the finished job, want 3", len(fs))
	}
}

func ledgerManyFailures(v *env) {
	v.add("a")
	const total = forebay.MaxFailures + 3
	for range total {
		v.end(v.one("a"), forebay.Retry, 0)
	}
	j := v.told("a", forebay.StateWaiting, total, total)
	if len(j.Failures) != forebay.MaxFailures || j.Failures[0].Attempt != total-forebay.MaxFailures+1 || j.Failures[forebay.MaxFailures-1].Attempt != total {
		v.failf("%d failures are kept, of attempts %d to %d", len(j.Failures), j.Failures[0].Attempt, j.Failures[len(j.Failures)-1].Attempt)
	}
}

func ledgerLeaseLost(v *env) {
	v.add("a")
	v.one("a")
	v.pass(v.lease() + v.unit)
	v.told("a", forebay.StateWaiting, 0, 1)
	d := v.one("a")
	v.told("a", forebay.StateActive, 0, 2)
	v.ack(d)
	v.told("a", forebay.StateCompleted, 0, 2)
}

// saying makes an update about all that a progress has.
func saying(d forebay.Delivery, stage string, percent float64) forebay.ProgressUpdate {
	return forebay.ProgressUpdate{Receipt: d.Receipt, Progress: &forebay.Progress{
		Stage: stage, Percent: percent, Message: "at " + stage, Data: []byte(`{"stage":"` + stage + `"}`),
	}}
}

// says wants the progress of a job as saying made it.
func (v *env) says(id, stage string, percent float64) {
	v.Helper()
	p := v.job(id).Progress
	if p.Stage != stage || p.Percent != percent || p.Message != "at "+stage || string(p.Data) != `{"stage":"`+stage+`"}` || p.At.IsZero() {
		v.failf("%q has progress %+v (%s), want %v %% of %q", id, p, p.Data, percent, stage)
	}
}

func ledgerProgress(v *env) {
	v.add("a", "b")
	ds := v.one2("a", "b")
	v.codes(v.progress(saying(ds[0], "load", 12.5), saying(ds[1], "résumé", 0)), "", "")
	v.says("a", "load", 12.5)
	v.says("b", "résumé", 0)
	v.codes(v.progress(saying(ds[0], "store", 100)), "")
	v.says("a", "store", 100)
	now := time.Now()
	v.codes(v.progress(forebay.ProgressUpdate{Receipt: ds[0].Receipt, Log: []forebay.LogLine{{At: now, Text: "one"}, {At: now, Text: "two"}}}), "")
	v.says("a", "store", 100) // lines change no progress
	v.says("b", "résumé", 0)
	lines := v.events(engine.HistoryQuery{Job: "a", Types: []forebay.HistoryType{forebay.HistoryLog}})
	if len(lines) != 2 || lines[0].Text != "one" || lines[1].Text != "two" {
		v.failf("the lines are told as %+v", lines)
	}
}

func ledgerProgressFenced(v *env) {
	v.add("a")
	v.put("no job")
	ds := v.take(2)
	old, other := ds[0], ds[1]
	v.codes(v.progress(saying(other, "x", 1), forebay.ProgressUpdate{Receipt: "no receipt"}), forebay.CodeLeaseLost, forebay.CodeLeaseLost)
	v.codes(v.progress(saying(old, "first", 10)), "")
	v.ack(other)
	v.pass(v.lease() + v.unit)
	v.codes(v.progress(saying(old, "late", 90)), forebay.CodeLeaseLost)
	now := v.one("a")
	v.codes(v.progress(saying(now, "second", 20)), "")
	v.codes(v.progress(saying(old, "late", 90), saying(now, "third", 30)), forebay.CodeLeaseLost, "")
	v.says("a", "third", 30)
	v.ack(now)
	v.codes(v.progress(saying(now, "late", 90)), forebay.CodeLeaseLost)
	v.says("a", "third", 30)
	for _, e := range v.events(engine.HistoryQuery{Job: "a"}) {
		if e.Progress != nil && e.Progress.Stage == "late" {
			v.failf("the history has the refused progress %+v", e)
		}
	}
}

func ledgerProgressKept(v *env) {
	v.add("a", "b")
	ds := v.one2("a", "b")
	v.codes(v.progress(saying(ds[0], "most", 80), saying(ds[1], "half", 50)), "", "")
	v.ack(ds[0])
	v.says("a", "most", 80)
	v.endAs(ds[1], forebay.Cancelled)
	v.says("b", "half", 50)
}

func ledgerReopen(v *env) {
	v.send(job("late", notBefore(time.Now().Add(10*v.unit))))
	v.add("done", "dead", "cancelled", "expired", "again", "waits")
	ds := v.take(5)
	v.codes(v.progress(saying(ds[0], "x", 1)), "")
	v.codes(v.settle(forebay.Settlement{Receipt: ds[0].Receipt, Verdict: forebay.Ack, Result: []byte(`{"n":1}`)}), "")
	v.endAs(ds[1], forebay.Dead)
	v.endAs(ds[2], forebay.Cancelled)
	v.endAs(ds[3], forebay.Expired)
	v.end(ds[4], forebay.Retry, 0)
	full := fullJob("full")
	full.Queue = "other"
	v.send(full)
	all := []string{"late", "done", "dead", "cancelled", "expired", "again", "waits", "full"}
	before := make(map[string]forebay.Job)
	for _, id := range all {
		before[id] = v.job(id)
	}
	for range 2 {
		v.reopen()
		for _, id := range all {
			v.sameJob(v.job(id), before[id])
			v.sameOptions(v.job(id).Job, before[id].Job)
		}
	}
	v.want(v.take(1), "again") // the oldest that waits
	v.reopen()
	v.told("again", forebay.StateWaiting, 1, 2)
}
