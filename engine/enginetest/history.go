package enginetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func historyCases() []testCase {
	return []testCase{
		{name: "history/every transition of a worked job", needs: Ledger, run: historyWorked},
		{name: "history/every transition of jobs that wait", needs: Ledger, run: historyWaiting},
		{name: "history/every end", needs: Ledger, run: historyEnds},
		{name: "history/agrees with the order of what happened", needs: Ledger, run: historyOrder},
		{name: "history/places grow and are never used twice", needs: Ledger, reopens: true, run: historyPlaces},
		{name: "history/page by page", needs: Ledger, run: historyPages},
		{name: "history/by job, queue and type", needs: Ledger, run: historyFilters},
		{name: "history/by time", needs: Ledger, run: historyTimes},
		{name: "history/only what comes from now on", needs: Ledger, run: historyFromNow},
		{name: "history/waits without polling", invariants: []int{11}, needs: Ledger, run: historyWaits},
		{name: "history/a wait ends with its context and with the engine", needs: Ledger, run: historyWaitEnds},
		{name: "history/bounds", needs: Ledger, run: historyBounds},
		{name: "history/many read while many write", needs: Ledger, run: historyConcurrently},
	}
}

// event wants what all events have, and what is said of this one.
func (v *env) event(e forebay.HistoryEvent, attempt int, state forebay.State, delayed bool) {
	v.Helper()
	if e.Seq <= 0 || e.At.IsZero() || e.Job == "" || e.Queue != testQueue || e.Kind != "kind" {
		v.failf("event %+v lacks its place, time, job, queue or kind", e)
	}
	if e.Attempt != attempt || e.State != state || e.Due.IsZero() == delayed {
		v.failf("event %s has attempt %d, state %q, due %v; want %d, %q, due %v", e.Type, e.Attempt, e.State, e.Due, attempt, state, delayed)
	}
}

func historyWorked(v *env) {
	v.add("a")
	d := v.one("a")
	v.codes(v.progress(saying(d, "load", 50)), "")
	v.codes(v.progress(forebay.ProgressUpdate{Receipt: d.Receipt, Log: []forebay.LogLine{{Text: "a line"}}}), "")
	due := time.Now().Add(5 * v.unit)
	v.end(d, forebay.Retry, 5*v.unit)
	v.pass(6 * v.unit)
	v.end(v.one("a"), forebay.Release, 5*v.unit)
	v.pass(6 * v.unit)
	v.one("a")
	v.pass(v.lease() + v.unit)
	d = v.one("a")
	v.codes(v.settle(forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack, Result: []byte(`{"n":1}`)}), "")
	got := v.story("a", forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryProgress, forebay.HistoryLog, forebay.HistoryRetry,
		forebay.HistoryStarted, forebay.HistoryReleased, forebay.HistoryStarted, forebay.HistoryLeaseLost, forebay.HistoryStarted, forebay.HistoryCompleted)
	v.event(got[1], 1, forebay.StateActive, false)
	v.event(got[4], 1, forebay.StateDelayed, true)
	v.near("the time of the retry", got[4].Due, due, due)
	v.event(got[5], 2, forebay.StateActive, false)
	if got[6].State != forebay.StateDelayed || got[8].State != forebay.StateWaiting {
		v.failf("after release and lost lease the states are %q and %q", got[6].State, got[8].State)
	}
	v.event(got[9], 2, forebay.StateActive, false)
	v.event(got[10], 2, forebay.StateCompleted, false)
	if p := got[2].Progress; p == nil || p.Stage != "load" || p.Percent != 50 || string(p.Data) != `{"stage":"load"}` {
		v.failf("the progress is told as %+v", got[2])
	}
	if got[3].Text != "a line" || string(got[10].Result) != `{"n":1}` {
		v.failf("line and result are told as %q and %s", got[3].Text, got[10].Result)
	}
	if got[4].Cause == nil {
		v.failf("the retry has no cause")
	}
	v.sameCause(*got[4].Cause, cause("because"))
}

func historyWaiting(v *env) {
	due := time.Now().Add(5 * v.unit)
	v.send(job("a", notBefore(due)))
	now := time.Time{}
	v.codes(v.change(engine.JobChange{ID: "a", Due: &now}), "")
	got := v.story("a", forebay.HistoryAdded, forebay.HistoryChanged)
	v.event(got[0], got[0].Attempt, forebay.StateDelayed, true)
	v.event(got[1], got[1].Attempt, forebay.StateWaiting, false)
	v.near("the due time", got[0].Due, due, due)
	debounced := func(body string) forebay.Message {
		return job("b"+body, withKey("k"), withBody(body), opts(func(o *forebay.JobOptions) { o.Dedup = forebay.DedupDebounce }))
	}
	v.send(debounced("1"))
	v.send(debounced("2"))
	v.story("b1", forebay.HistoryAdded, forebay.HistoryReplaced)
	v.story("b2")
	v.add("c")
	v.duplicate(v.send(job("c"))[0], "c", false)
	v.story("c", forebay.HistoryAdded) // a duplicate has none of its own
}

func historyEnds(v *env) {
	v.add("dead", "cancelled", "expired", "stopped")
	ds := v.take(4)
	v.endAs(ds[0], forebay.Dead)
	v.endAs(ds[1], forebay.Cancelled)
	v.endAs(ds[2], forebay.Expired)
	v.cancelled(forebay.StateActive, "stopped")
	v.endAs(ds[3], forebay.Cancelled)
	for id, typ := range map[string]forebay.HistoryType{
		"dead": forebay.HistoryDead, "cancelled": forebay.HistoryCancelled, "expired": forebay.HistoryExpired,
	} {
		got := v.story(id, forebay.HistoryAdded, forebay.HistoryStarted, typ)
		v.event(got[2], 1, forebay.State(id), false)
		if got[2].Cause == nil {
			v.failf("%s has no cause", id)
		}
		v.sameCause(*got[2].Cause, cause(id))
	}
	got := v.story("stopped", forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryCancelRequested, forebay.HistoryCancelled)
	if got[2].Text != "no more wanted" || got[2].State != "" && got[2].State != forebay.StateActive {
		v.failf("the request to stop is told as %+v", got[2])
	}
}

func historyOrder(v *env) {
	v.add("a", "b", "c")
	ds := v.take(3)
	v.ack(ds[2], ds[0])
	v.ack(ds[1])
	var got []string
	last := forebay.HistoryEvent{}
	for _, e := range v.events(engine.HistoryQuery{}) {
		if e.Seq <= last.Seq || e.At.Before(last.At) {
			v.failf("event %+v follows %+v", e, last)
		}
		got, last = append(got, fmt.Sprint(e.Type, " ", e.Job)), e
	}
	want := []string{"added a", "added b", "added c", "started a", "started b", "started c", "completed c", "completed a", "completed b"}
	if !slices.Equal(got, want) {
		v.failf("the history is %v, want %v", got, want)
	}
}

func (v *env) historyPage(q engine.HistoryQuery) engine.HistoryPage {
	v.Helper()
	page, err := able[engine.History](v).History(v.ctx, q)
	if err != nil {
		v.failf("history %+v: %v", q, err)
	}
	return page
}

func historyPlaces(v *env) {
	seen := make(map[int64]forebay.HistoryEvent)
	last := int64(0)
	epoch := v.historyPage(engine.HistoryQuery{}).Epoch
	for round := range 4 {
		id := fmt.Sprint("m", round)
		v.add(id)
		d := v.one(id)
		v.codes(v.progress(saying(d, "x", 1)), "") // need not outlive a crash, its place does
		v.ack(d)
		for _, e := range v.events(engine.HistoryQuery{After: last}) {
			if _, again := seen[e.Seq]; again || e.Seq <= last {
				v.failf("place %d was given again, after %d", e.Seq, last)
			}
			seen[e.Seq], last = e, e.Seq
		}
		v.removeJobs(id)
		for _, e := range v.events(engine.HistoryQuery{After: last}) {
			seen[e.Seq], last = e, e.Seq
		}
		v.reopen()
		if got := v.historyPage(engine.HistoryQuery{}).Epoch; got != epoch || got == "" {
			v.failf("the epoch was %q and is %q", epoch, got)
		}
		for _, e := range v.events(engine.HistoryQuery{}) {
			if was := seen[e.Seq]; was.Job != e.Job || was.Type != e.Type || !was.At.Equal(e.At) {
				v.failf("place %d was %+v and is %+v", e.Seq, was, e)
			}
		}
	}
}
