package enginetest

import (
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func expiryCases() []testCase {
	return []testCase{
		{name: "expiry/on time, while no consumer asks", needs: Ledger, run: expiryOnTime},
		{name: "expiry/one that was begun does not expire", needs: Ledger, run: expiryBegun},
		{name: "expiry/a receiver that waits does not get it", needs: Ledger, run: expiryWaiting},
		{name: "expiry/in a group the next one goes on", invariants: []int{6}, needs: Ledger, run: expiryGroup},
		{name: "expiry/many at once, each once", needs: Ledger, run: expiryMany},
		{name: "expiry/after a restart, on time", invariants: []int{1}, needs: Ledger, reopens: true, run: expiryReopen},
		{name: "expiry/what passed while it was closed", invariants: []int{1}, needs: Ledger, reopens: true, run: expiryClosed},
		{name: "deadline/what waits is dead on time", needs: Ledger, run: deadlineWaiting},
		{name: "deadline/an active one may finish after it", needs: Ledger, run: deadlineActive},
		{name: "deadline/an active one is dead when its lease ends", invariants: []int{4}, needs: Ledger, run: deadlineLease},
		{name: "deadline/a retry or a release after it is death", needs: Ledger, run: deadlineRetry},
		{name: "deadline/after a restart, on time", invariants: []int{1}, needs: Ledger, reopens: true, run: deadlineReopen},
	}
}

// tooLate wants jobs dead because of their deadline.
func (v *env) tooLate(ids ...string) {
	v.Helper()
	for _, id := range ids {
		if j := v.job(id); j.State != forebay.StateDead || j.Cause.Code != "deadline" || j.DeadSeq == 0 {
			v.failf("%q is %s because of %+v, dead letter %d; want dead because of its deadline", id, j.State, j.Cause, j.DeadSeq)
		}
	}
}

func expiryOnTime(v *env) {
	at := time.Now().Add(5 * v.unit)
	v.send(job("a", expires(at)), job("late", expires(at.Add(v.unit/2)), notBefore(at)), job("b"), job("c", expires(at.Add(time.Hour))))
	v.pass(4 * v.unit)
	v.is(forebay.StateWaiting, "a", "b", "c")
	v.pass(2 * v.unit)
	v.counts(testQueue, 2, 0, 0, 0) // before anybody asks for one of them
	v.is(forebay.StateExpired, "a", "late")
	v.near("the finish", v.job("a").FinishedAt, at, at)
	got := v.story("a", forebay.HistoryAdded, forebay.HistoryExpired)
	v.near("the event", got[1].At, at, at)
	if got[1].State != forebay.StateExpired || got[1].Cause == nil || v.job("a").Cause.Code == "" {
		v.failf("the end is told as %+v, without a cause", got[1])
	}
	if s := v.stats(testQueue); s.Expired != 2 {
		v.failf("stats count %d expired, want 2", s.Expired)
	}
	v.want(v.take(10), "b", "c")
}

func expiryBegun(v *env) {
	at := time.Now().Add(5 * v.unit)
	for _, id := range []string{"active", "retried", "lost"} {
		v.send(job(id, expires(at)))
	}
	ds := v.take(2)
	v.receive(engine.Receive{Queue: testQueue, Max: 1, Lease: 2 * v.unit}) // lost
	v.end(ds[1], forebay.Retry, 20*v.unit)
	v.pass(10 * v.unit)
	v.is(forebay.StateActive, "active")
	v.is(forebay.StateDelayed, "retried")
	v.is(forebay.StateWaiting, "lost")
	v.ack(ds[0])
	v.ack(v.one("lost"))
	v.pass(11 * v.unit)
	v.ack(v.one("retried"))
}

func expiryWaiting(v *env) {
	v.limit(engine.QueueLimits{Paused: true})
	v.send(job("a", expires(time.Now().Add(5*v.unit))), job("b"))
	wait := v.afterAWhile(func() {
		v.pass(6 * v.unit)
		v.limit(engine.QueueLimits{})
	})
	v.want(v.receive(engine.Receive{Queue: testQueue, Max: 10, Wait: 30 * v.unit, Lease: v.lease()}), "b")
	wait()
	v.is(forebay.StateExpired, "a")
}

func expiryGroup(v *env) {
	at := time.Now().Add(5 * v.unit)
	v.send(jobsOf([]string{"g1", "g2", "g3"}, inGroup("g"))...)
	v.send(job("h1", inGroup("h"), expires(at)), job("h2", inGroup("h")), job("h3", inGroup("h"), expires(at)), job("h4", inGroup("h")))
	v.pass(6 * v.unit)
	v.is(forebay.StateExpired, "h1", "h3")
	ds := v.take(10)
	v.wantSet(ds, "g1", "g2", "g3", "h2", "h4")
	at2, at4 := slices.Index(idsOf(ds), "h2"), slices.Index(idsOf(ds), "h4")
	if at2 > at4 {
		v.failf("%v came, want those of a group in order", idsOf(ds))
	}
}

func expiryMany(v *env) {
	const n = 600
	at := time.Now().Add(5 * v.unit)
	v.send(jobsOf(ids("m", n), expires(at))...)
	v.send(jobsOf(ids("keep", 10))...)
	v.pass(8 * v.unit)
	v.counts(testQueue, 10, 0, 0, 0)
	if got := v.events(engine.HistoryQuery{Types: []forebay.HistoryType{forebay.HistoryExpired}}); len(got) != n {
		v.failf("%d expired by the history, want %d", len(got), n)
	}
	v.is(forebay.StateExpired, ids("m", n)...)
	if ds := v.takeAll(testQueue); len(ds) != 10 {
		v.failf("%d came, want the 10 that do not expire", len(ds))
	}
}

func expiryReopen(v *env) {
	at := time.Now().Add(5 * v.unit)
	v.send(job("a", expires(at)), job("begun", expires(at)), job("retried", expires(at)))
	v.cancelled(forebay.StateCancelled, "begun")
	v.reopen()
	v.is(forebay.StateWaiting, "a")
	v.pass(6 * v.unit)
	v.is(forebay.StateExpired, "a", "retried")
	v.is(forebay.StateCancelled, "begun")
	v.near("the finish", v.job("a").FinishedAt, at, at)
	v.reopen()
	v.is(forebay.StateExpired, "a")
	v.none()
}

func expiryClosed(v *env) {
	at := time.Now().Add(5 * v.unit)
	v.send(job("begun", deadline(at.Add(100*v.unit)), expires(at)))
	v.end(v.one("begun"), forebay.Retry, 0)
	v.send(job("a", expires(at)), job("b", deadline(at)), job("c"))
	if err := v.e.Close(); err != nil {
		v.failf("close: %v", err)
	}
	v.pass(6 * v.unit)
	v.reopen()
	v.want(v.take(10), "begun", "c")
	v.pass(v.unit)
	v.is(forebay.StateExpired, "a")
	v.tooLate("b")
}

func deadlineWaiting(v *env) {
	at := time.Now().Add(5 * v.unit)
	v.send(job("retried", deadline(at)))
	v.end(v.one("retried"), forebay.Retry, 100*v.unit)
	v.send(job("a", deadline(at)), job("b"), job("late", notBefore(at.Add(-v.unit/2)), deadline(at)))
	v.pass(4 * v.unit)
	v.is(forebay.StateWaiting, "a")
	v.pass(2 * v.unit)
	v.counts(testQueue, 1, 0, 0, 3)
	v.tooLate("a", "retried", "late")
	v.near("the death", v.job("a").FinishedAt, at, at)
	v.told("retried", forebay.StateDead, 1, 1)
	if letters := v.dead(engine.DeadQuery{Code: "deadline"}); len(letters) != 3 {
		v.failf("%d dead letters because of the deadline, want 3", len(letters))
	}
	v.story("a", forebay.HistoryAdded, forebay.HistoryDead)
	v.one("b")
}

func deadlineActive(v *env) {
	at := time.Now().Add(5 * v.unit)
	v.send(job("a", deadline(at)), job("b", deadline(at)))
	ds := v.one2("a", "b")
	v.pass(6 * v.unit)
	v.is(forebay.StateActive, "a", "b")
	v.codes(v.extend(v.lease(), ds[0].Receipt), "")
	v.codes(v.settle(forebay.Settlement{Receipt: ds[0].Receipt, Verdict: forebay.Ack, Result: []byte("1")}), "")
	v.is(forebay.StateCompleted, "a")
	v.codes(v.settle(forebay.Settlement{Receipt: ds[1].Receipt, Verdict: forebay.Dead, Cause: forebay.Cause{Code: "deadline"}}), "")
	v.tooLate("b")
}

func deadlineLease(v *env) {
	v.send(job("a", deadline(time.Now().Add(5*v.unit))))
	d := v.receive(engine.Receive{Queue: testQueue, Max: 1, Lease: 10 * v.unit})
	v.pass(9 * v.unit)
	v.is(forebay.StateActive, "a")
	v.pass(2 * v.unit)
	v.tooLate("a")
	v.codes(v.settle(acks(d)...), forebay.CodeLeaseLost)
	v.none()
}

func deadlineRetry(v *env) {
	at := time.Now().Add(5 * v.unit)
	v.send(job("a", deadline(at)), job("b", deadline(at)), job("c", deadline(at)))
	ds := v.take(3)
	v.end(ds[2], forebay.Retry, 2*v.unit)
	v.pass(3 * v.unit)
	v.want(v.take(1), "c") // in time
	v.pass(3 * v.unit)
	v.end(ds[0], forebay.Retry, 0)
	v.end(ds[1], forebay.Release, v.unit)
	v.tooLate("a", "b")
	v.none()
	v.counts(testQueue, 0, 1, 0, 2)
}

func deadlineReopen(v *env) {
	at := time.Now().Add(5 * v.unit)
	v.send(job("active", deadline(at)), job("a", deadline(at)))
	v.want(v.take(1), "active")
	v.reopen() // it frees the lease
	v.is(forebay.StateWaiting, "active", "a")
	v.pass(6 * v.unit)
	v.tooLate("active", "a")
	v.reopen()
	v.tooLate("active", "a")
	v.none()
}
