package enginetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func cancelCases() []testCase {
	return []testCase{
		{name: "cancel/what waits is cancelled when it returns", needs: Ledger, run: cancelWaiting},
		{name: "cancel/an active one is asked to stop", needs: Ledger, run: cancelActive},
		{name: "cancel/whoever holds it is told, and may go on", invariants: []int{3}, needs: Ledger, run: cancelTold},
		{name: "cancel/the lease ends without a verdict", invariants: []int{4}, needs: Ledger, run: cancelLeaseEnds},
		{name: "cancel/a retry or a release after it is the end", needs: Ledger, run: cancelGivenBack},
		{name: "cancel/finishing in time is finishing", needs: Ledger, run: cancelFinished},
		{name: "cancel/asked twice", needs: Ledger, run: cancelTwice},
		{name: "cancel/one bad id never spoils the call", invariants: []int{8}, needs: Ledger, run: cancelMixed},
		{name: "cancel/in a group the next one goes on", invariants: []int{6}, needs: Ledger, run: cancelGroup},
		{name: "cancel/frees its place under a limit", invariants: []int{7}, needs: Ledger, run: cancelLimit},
		{name: "cancel/beside a settle one of them wins", needs: Ledger, run: cancelConcurrently},
		{name: "cancel/outlives a restart", invariants: []int{1}, needs: Ledger, reopens: true, run: cancelReopen},
	}
}

func cancelWaiting(v *env) {
	v.send(job("late", notBefore(time.Now().Add(5*v.unit))))
	v.add("a", "b", "retried")
	v.counts(testQueue, 3, 0, 1, 0)
	for _, d := range v.take(3) {
		if d.ID == "retried" {
			v.end(d, forebay.Retry, 5*v.unit)
		} else {
			v.end(d, forebay.Release, 0)
		}
	}
	begin := time.Now()
	v.cancelled(forebay.StateCancelled, "late", "b", "retried")
	for _, id := range []string{"late", "b", "retried"} {
		j := v.job(id)
		if j.State != forebay.StateCancelled || j.Cause.Code != string(forebay.CodeCancelled) || !strings.Contains(j.Cause.Message, "no more wanted") {
			v.failf("cancelled %q is %s because of %+v", id, j.State, j.Cause)
		}
		v.near("the finish", j.FinishedAt, begin, time.Now())
	}
	v.counts(testQueue, 1, 0, 0, 0)
	if s := v.stats(testQueue); s.Cancelled != 3 {
		v.failf("stats count %d cancelled, want 3", s.Cancelled)
	}
	v.pass(10 * v.unit)
	v.one("a")
	v.story("late", forebay.HistoryAdded, forebay.HistoryCancelled)
}

func cancelActive(v *env) {
	v.add("a")
	d := v.one("a")
	v.cancelled(forebay.StateActive, "a")
	j := v.told("a", forebay.StateActive, 0, 1)
	if !j.CancelRequested {
		v.failf("the ledger does not say that it was asked to stop")
	}
	v.counts(testQueue, 0, 1, 0, 0)
	v.endAs(d, forebay.Cancelled)
	v.told("a", forebay.StateCancelled, 0, 1)
	if v.job("a").CancelRequested {
		v.failf("a finished job says that it is to stop")
	}
	v.none()
}

func cancelTold(v *env) {
	v.add("a", "b")
	ds := v.one2("a", "b")
	v.cancelled(forebay.StateActive, "a")
	for range 3 { // it is extended all the same
		v.pass(v.lease() / 2)
		v.codes(v.extend(v.lease(), ds[0].Receipt, ds[1].Receipt), forebay.CodeCancelled, "")
	}
	v.codes(v.progress(saying(ds[0], "undo", 40), saying(ds[1], "go", 1)), forebay.CodeCancelled, "")
	v.says("a", "undo", 40) // and noted
	v.is(forebay.StateActive, "a", "b")
	v.endAs(ds[0], forebay.Cancelled)
	v.codes(v.extend(v.lease(), ds[0].Receipt), forebay.CodeLeaseLost)
	v.codes(v.progress(saying(ds[0], "late", 50)), forebay.CodeLeaseLost)
	v.cancelled(forebay.StateActive, "b")
	v.codes(v.extend(0, ds[1].Receipt, ds[1].Receipt), forebay.CodeCancelled, forebay.CodeLeaseLost) // so is who gives it up
	v.is(forebay.StateCancelled, "b")
}

func cancelLeaseEnds(v *env) {
	v.add("a", "b")
	ds := v.one2("a", "b")
	v.cancelled(forebay.StateActive, "a")
	v.pass(v.lease() - v.unit)
	v.is(forebay.StateActive, "a")
	v.pass(2 * v.unit)
	if j := v.told("a", forebay.StateCancelled, 0, 1); j.Cause.Code != string(forebay.CodeCancelled) || !strings.Contains(j.Cause.Message, "no more wanted") {
		v.failf("it was cancelled because of %+v", j.Cause)
	}
	v.codes(v.settle(acks(ds[:1])...), forebay.CodeLeaseLost)
	v.one("b") // nobody asked it to stop
	v.story("a", forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryCancelRequested, forebay.HistoryCancelled)
}

func cancelGivenBack(v *env) {
	v.add("retry", "release", "later")
	ds := v.take(3)
	v.cancelled(forebay.StateActive, "retry", "release", "later")
	v.end(ds[0], forebay.Retry, 0)
	v.end(ds[1], forebay.Release, 0)
	v.end(ds[2], forebay.Release, 5*v.unit)
	v.is(forebay.StateCancelled, "retry", "release", "later")
	v.pass(10 * v.unit)
	v.none()
	v.counts(testQueue, 0, 0, 0, 0)
}

func cancelFinished(v *env) {
	v.add("a", "b")
	ds := v.one2("a", "b")
	v.cancelled(forebay.StateActive, "a", "b")
	v.codes(v.settle(forebay.Settlement{Receipt: ds[0].Receipt, Verdict: forebay.Ack, Result: []byte("1")}), "")
	v.endAs(ds[1], forebay.Dead)
	if j := v.job("a"); j.State != forebay.StateCompleted || string(j.Result) != "1" {
		v.failf("a job that finished after all is %s with result %s", j.State, j.Result)
	}
	v.is(forebay.StateDead, "b")
}

func cancelTwice(v *env) {
	v.add("a", "b")
	v.take(1)
	v.cancelled(forebay.StateActive, "a", "a")
	v.cancelled(forebay.StateActive, "a")
	v.story("a", forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryCancelRequested)
	res := v.cancel("", "b", "b")
	if res[0].Err != nil || res[0].State != forebay.StateCancelled || forebay.CodeOf(res[1].Err) != forebay.CodeConflict {
		v.failf("one id twice in a call gave %+v", res)
	}
	v.story("b", forebay.HistoryAdded, forebay.HistoryCancelled)
}

func cancelMixed(v *env) {
	v.put("message")
	v.add("done", "dead", "active", "waits")
	for _, d := range v.take(4) {
		switch d.ID {
		case "done", "message":
			v.ack(d)
		case "dead":
			v.endAs(d, forebay.Dead)
		}
	}
	v.put("message 2")
	ids := []string{"done", "nobody", "waits", "", "dead", "message", "message 2", "active", strings.Repeat("x", 10_000)}
	want := []forebay.Code{forebay.CodeConflict, forebay.CodeNotFound, "", forebay.CodeNotFound, forebay.CodeConflict,
		forebay.CodeNotFound, forebay.CodeNotFound, "", forebay.CodeNotFound}
	for i, r := range v.cancel("x", ids...) {
		code := forebay.CodeOf(r.Err)
		if code == forebay.CodeInvalid && want[i] == forebay.CodeNotFound && (ids[i] == "" || len(ids[i]) > forebay.MaxIDBytes) {
			continue // no id at all may be called either
		}
		if code != want[i] {
			v.failf("cancel of %.20q gave %+v, want code %q", ids[i], r, want[i])
		}
	}
	v.is(forebay.StateCancelled, "waits")
	v.is(forebay.StateCompleted, "done")
	v.one("message 2")
}

func cancelGroup(v *env) {
	v.send(jobsOf(ids("g", 4), inGroup("g"))...)
	d := v.take(1)
	v.want(d, "g1")
	v.cancelled(forebay.StateCancelled, "g2")
	v.ack(d...)
	d = v.take(1)
	v.want(d, "g3")
	v.cancelled(forebay.StateActive, "g3")
	v.none()
	v.pass(v.lease() + v.unit)
	v.is(forebay.StateCancelled, "g3")
	v.want(v.take(10), "g4")
}

func cancelLimit(v *env) {
	if v.h.Cannot[Limiting] != "" {
		return
	}
	v.limit(engine.QueueLimits{Active: 1, KeyActive: 1})
	v.send(jobsOf([]string{"a", "b", "c"}, withLimit("k"))...)
	v.one("a")
	v.none()
	v.cancelled(forebay.StateCancelled, "b")
	v.cancelled(forebay.StateActive, "a")
	v.none() // it is still there
	v.pass(v.lease() + v.unit)
	v.one("c")
}

func cancelConcurrently(v *env) {
	for round := range 10 {
		id := fmt.Sprint("m", round)
		v.add(id)
		d := v.one(id)
		var asked atomic.Int32
		v.each(6, func(i int) error {
			if i == 0 {
				errs, err := v.e.Settle(v.ctx, acks([]forebay.Delivery{d}))
				if err != nil || errs[0] != nil {
					return fmt.Errorf("settle: %v, %v", errs, err)
				}
				return nil
			}
			res, err := able[engine.Jobs](v).Cancel(v.ctx, []string{id}, "x")
			switch {
			case err != nil:
				return err
			case res[0].Err == nil && res[0].State == forebay.StateActive:
				asked.Add(1)
			case forebay.CodeOf(res[0].Err) != forebay.CodeConflict:
				return fmt.Errorf("cancel gave %+v", res)
			}
			return nil
		})
		want := []forebay.HistoryType{forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryCompleted}
		if asked.Load() > 0 {
			want = []forebay.HistoryType{forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryCancelRequested, forebay.HistoryCompleted}
		}
		v.is(forebay.StateCompleted, id)
		v.story(id, want...)
	}
}

func cancelReopen(v *env) {
	v.add("held", "waiting", "other")
	v.want(v.take(1), "held")
	v.cancelled(forebay.StateActive, "held")
	v.cancelled(forebay.StateCancelled, "waiting")
	v.reopen()
	v.is(forebay.StateCancelled, "held", "waiting")
	if j := v.job("held"); !strings.Contains(j.Cause.Message, "no more wanted") {
		v.failf("after reopening it was cancelled because of %+v", j.Cause)
	}
	v.one("other")
	for _, r := range v.cancel("x", "held", "waiting") {
		if forebay.CodeOf(r.Err) != forebay.CodeConflict {
			v.failf("cancel of a cancelled job gave %+v", r)
		}
	}
	v.story("held", forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryCancelRequested, forebay.HistoryCancelled)
}
