package enginetest

import (
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func retentionCases() []testCase {
	return []testCase{
		{name: "retention/without a bound nothing leaves", invariants: []int{12}, needs: Ledger, run: retentionNone},
		{name: "retention/by age", invariants: []int{12}, needs: Ledger, run: retentionAge},
		{name: "retention/by count the newest are kept", invariants: []int{12}, needs: Ledger, run: retentionCount},
		{name: "retention/not kept at all", needs: Ledger, run: retentionNotKept},
		{name: "retention/dead by age and count", invariants: []int{12}, needs: Ledger, run: retentionDead},
		{name: "retention/many at once", invariants: []int{10}, needs: Ledger, run: retentionMany},
		{name: "retention/outlives a restart", needs: Ledger, reopens: true, run: retentionReopen},
		{name: "remove/finished ones only", invariants: []int{8, 12}, needs: Ledger, run: removeFinished},
		{name: "remove/a dead one is no dead letter any more", invariants: []int{12}, needs: Ledger, run: removeDead},
		{name: "remove/outlives a restart", invariants: []int{1}, needs: Ledger, reopens: true, run: removeReopen},
	}
}

func keep(k forebay.Keep) func(*forebay.Message) {
	return opts(func(o *forebay.JobOptions) { o.Keep.Finished = k })
}

func keepDead(k forebay.Keep) func(*forebay.Message) {
	return opts(func(o *forebay.JobOptions) { o.Keep.Dead = k })
}

// aWhile is what retention may take to notice.
func (v *env) aWhile() { v.pass(5 * v.unit) }

// endAll ends jobs that wait, each by a verdict in turn.
func (v *env) endAll(n int, verdicts ...forebay.Verdict) {
	v.Helper()
	for i := range n {
		ds := v.take(1)
		if len(ds) != 1 {
			v.failf("%d of %d came", i, n)
		}
		v.endAs(ds[0], verdicts[i%len(verdicts)])
	}
}

func retentionNone(v *env) {
	v.add("a", "b", "c", "d")
	v.endAll(4, forebay.Ack, forebay.Cancelled, forebay.Expired, forebay.Dead)
	v.pass(time.Hour)
	v.is(forebay.StateCompleted, "a")
	v.is(forebay.StateCancelled, "b")
	v.is(forebay.StateExpired, "c")
	v.is(forebay.StateDead, "d")
}

func retentionAge(v *env) {
	v.send(jobsOf([]string{"a", "b", "c"}, keep(forebay.Keep{Age: 20 * v.unit}))...)
	v.send(job("long", keep(forebay.Keep{Age: time.Hour})), job("waits", keep(forebay.Keep{Age: v.unit})))
	v.endAll(4, forebay.Ack, forebay.Cancelled, forebay.Expired, forebay.Ack)
	v.pass(19 * v.unit)
	v.is(forebay.StateCompleted, "a", "long")
	v.is(forebay.StateCancelled, "b")
	v.is(forebay.StateExpired, "c")
	v.aWhile()
	v.noJob("a", "b", "c")
	v.is(forebay.StateCompleted, "long")
	v.pass(time.Hour)
	v.noJob("long")
	v.is(forebay.StateWaiting, "waits") // only what has finished leaves
	v.story("a", forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryCompleted)
}

func retentionCount(v *env) {
	k := keep(forebay.Keep{Count: 5})
	v.send(jobsOf(ids("m", 12), k)...)
	v.endAll(12, forebay.Ack, forebay.Cancelled)
	v.aWhile()
	v.noJob(ids("m", 7)...)
	v.is(forebay.StateCompleted, "m9", "m11")
	v.is(forebay.StateCancelled, "m8", "m10", "m12")
	v.send(job("other", inQueue("other"), k)) // a queue counts its own only
	v.ack(v.takeAll("other")...)
	v.aWhile()
	v.is(forebay.StateCompleted, "m9", "other")
	v.send(job("n", k))
	v.endAll(1, forebay.Expired)
	v.aWhile()
	v.noJob("m8")
	v.is(forebay.StateExpired, "n")
}

func retentionNotKept(v *env) {
	k := keep(forebay.Keep{None: true})
	v.send(jobsOf([]string{"a", "b", "c", "d"}, k)...)
	v.endAll(4, forebay.Ack, forebay.Cancelled, forebay.Expired, forebay.Dead)
	v.aWhile()
	v.noJob("a", "b", "c")
	v.is(forebay.StateDead, "d") // dead ones are kept until somebody acts on them
	v.story("a", forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryCompleted)
	v.duplicate(v.send(job("a", k))[0], "a", false) // its id is remembered all the same
}

func retentionDead(v *env) {
	v.send(jobsOf(ids("age", 2), keepDead(forebay.Keep{Age: 20 * v.unit}))...)
	v.endAll(2, forebay.Dead)
	v.aWhile()
	v.is(forebay.StateDead, ids("age", 2)...)
	v.pass(20 * v.unit)
	v.noJob(ids("age", 2)...)
	v.wantDead(engine.DeadQuery{})
	v.send(jobsOf(ids("count", 5), keepDead(forebay.Keep{Count: 2}))...)
	v.endAll(5, forebay.Dead)
	v.aWhile()
	v.noJob("count1", "count2", "count3")
	v.wantDead(engine.DeadQuery{}, "count5", "count4")
	v.counts(testQueue, 0, 0, 0, 2)
}

func retentionMany(v *env) {
	const n = 3000
	for from := 0; from < n; from += 500 {
		v.send(jobsOf(ids(fmt.Sprint("m", from, "-"), 500), keep(forebay.Keep{Count: 100}))...)
		v.ack(v.take(500)...)
	}
	v.pass(30 * v.unit)
	left := 0
	for from := 0; from < n; from += 500 {
		for _, id := range ids(fmt.Sprint("m", from, "-"), 500) {
			if _, err := able[engine.Jobs](v).Job(v.ctx, id); err == nil {
				left++
			}
		}
	}
	if left != 100 {
		v.failf("%d of %d are kept, want the newest 100", left, n)
	}
	v.is(forebay.StateCompleted, "m2500-500", "m2500-401")
}

func retentionReopen(v *env) {
	v.send(jobsOf(ids("age", 2), keep(forebay.Keep{Age: 20 * v.unit}))...)
	v.endAll(2, forebay.Ack)
	v.send(jobsOf(ids("count", 5), keep(forebay.Keep{Count: 2}))...)
	v.endAll(5, forebay.Ack)
	v.reopen()
	v.aWhile()
	v.is(forebay.StateCompleted, ids("age", 2)...)
	v.is(forebay.StateCompleted, "count4", "count5")
	v.noJob("count1", "count2", "count3")
	v.pass(20 * v.unit)
	v.noJob(ids("age", 2)...)
	v.reopen()
	v.noJob(ids("age", 2)...)
	v.is(forebay.StateCompleted, "count4", "count5")
}

func removeFinished(v *env) {
	v.put("message")
	v.add("a", "b", "c", "active", "waits")
	v.ack(v.take(1)...)
	v.endAll(3, forebay.Ack, forebay.Cancelled, forebay.Expired)
	v.want(v.take(1), "active")
	v.codes(v.removeJobs("a", "waits", "nobody", "active", "c", "a", "message", ""),
		"", forebay.CodeConflict, forebay.CodeNotFound, forebay.CodeConflict, "", forebay.CodeNotFound, forebay.CodeNotFound, forebay.CodeNotFound)
	v.noJob("a", "c")
	v.is(forebay.StateCancelled, "b")
	v.is(forebay.StateActive, "active")
	v.is(forebay.StateWaiting, "waits")
	v.codes(v.removeJobs("a", "b"), forebay.CodeNotFound, "")
}

func removeDead(v *env) {
	v.add("a", "b")
	v.endAll(2, forebay.Dead)
	v.codes(v.removeJobs("a"), "")
	v.noJob("a")
	letters := v.wantDead(engine.DeadQuery{}, "b")
	v.counts(testQueue, 0, 0, 0, 1)
	v.codes(v.replay(letters[0].Seq), "")
	v.codes(v.removeJobs("b"), forebay.CodeConflict) // it waits again
	v.ack(v.one("b"))
	v.codes(v.removeJobs("b"), "")
	v.noJob("b")
}

func removeReopen(v *env) {
	v.add("a", "b", "c")
	v.endAll(3, forebay.Ack, forebay.Dead, forebay.Ack)
	v.codes(v.removeJobs("a", "b"), "", "")
	v.reopen()
	v.noJob("a", "b")
	v.is(forebay.StateCompleted, "c")
	v.wantDead(engine.DeadQuery{})
	v.counts(testQueue, 0, 0, 0, 0)
}
