package enginetest

import (
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func reopenCases() []testCase {
	return []testCase{
		{name: "reopen/nothing is lost", invariants: []int{1}, reopens: true, run: reopenKeeps},
		{name: "reopen/leases are freed, deliveries counted", invariants: []int{4, 5}, reopens: true, run: reopenLeases},
		{name: "reopen/what is given back comes again", invariants: []int{4, 5}, reopens: true, run: reopenRelease},
		{name: "reopen/old receipts are void", invariants: []int{3}, reopens: true, run: reopenReceipts},
		{name: "reopen/failures are kept", invariants: []int{1}, reopens: true, run: reopenFailures},
		{name: "reopen/what is delayed stays delayed", invariants: []int{1}, reopens: true, run: reopenDelayed},
		{name: "reopen/duplicates are still known", invariants: []int{2}, reopens: true, run: reopenDedup},
		{name: "reopen/dead letters are kept", invariants: []int{12}, reopens: true, needs: DeadLetters, run: reopenDead},
		{name: "reopen/groups keep their order", invariants: []int{6}, reopens: true, run: reopenGroups},
		{name: "reopen/limits are kept", invariants: []int{7}, reopens: true, needs: Limiting, run: reopenLimits},
		{name: "reopen/the order of age is kept", invariants: []int{6}, reopens: true, run: reopenOrder},
	}
}

func reopenKeeps(v *env) {
	var msgs []forebay.Message
	for i, id := range ids("m", 300) {
		m := msg(id, inGroup(fmt.Sprint("g", i%7)), withLimit("l"), atLevel(i%10))
		if v.h.Cannot[Priorities] != "" {
			m.Priority = 0
		}
		m.Headers = map[string]string{"n": id}
		msgs = append(msgs, m)
	}
	v.send(msgs...)
	v.reopen()
	if s := v.stats(testQueue); s.Waiting != 300 {
		v.failf("%d wait after reopening, want 300", s.Waiting)
	}
	got := make(map[string]forebay.Message)
	for range 300 {
		ds := v.take(50)
		for _, d := range ds {
			got[d.ID] = d.Message
		}
		v.ack(ds...)
	}
	for _, m := range msgs {
		v.same(got[m.ID], m)
	}
	v.reopen()
	v.none()
	v.counts(testQueue, 0, 0, 0, 0)
}

func reopenLeases(v *env) {
	v.put("a", "b")
	ds := v.one2("a", "b")
	v.end(ds[1], forebay.Release, 0)
	for n := 2; n <= 4; n++ {
		v.reopen()
		v.counts(testQueue, 2, 0, 0, 0)
		for i, d := range v.one2("a", "b") { // the first hand-out of b was given back
			if d.Deliveries != n-i || d.Attempt != 1 {
				v.failf("after %d openings: %+v, want delivery %d, attempt 1", n, d, n-i)
			}
		}
	}
}

// Each way back to waiting works in an engine that was opened with messages but
// without any that had come back before.
func reopenRelease(v *env) {
	for name, back := range map[string]func(ds []forebay.Delivery){
		"released": func(ds []forebay.Delivery) {
			for _, d := range ds {
				v.end(d, forebay.Release, 0)
			}
		},
		"released for a while": func(ds []forebay.Delivery) {
			for _, d := range ds {
				v.end(d, forebay.Release, v.unit)
			}
			v.pass(2 * v.unit)
		},
		"expired": func([]forebay.Delivery) { v.pass(v.lease() + v.unit) },
	} {
		ids := []string{name + " a", name + " b"}
		v.put(ids...)
		v.reopen()
		back(v.take(2))
		ds := v.take(3)
		v.wantSet(ds, ids...)
		v.ack(ds...)
	}
}

func reopenReceipts(v *env) {
	v.put("a")
	old := v.one("a")
	v.reopen()
	v.codes(v.settle(acks([]forebay.Delivery{old})...), forebay.CodeLeaseLost)
	now := v.one("a")
	if now.Receipt == old.Receipt {
		v.failf("receipt %q was given again", old.Receipt)
	}
	v.codes(v.settle(acks([]forebay.Delivery{old})...), forebay.CodeLeaseLost)
	v.codes(v.extend(v.lease(), old.Receipt), forebay.CodeLeaseLost)
	v.ack(now)
}

func reopenFailures(v *env) {
	v.put("a")
	s := forebay.Settlement{Receipt: v.one("a").Receipt, Verdict: forebay.Retry, Cause: cause("x")}
	v.codes(v.settle(s), "")
	v.reopen()
	d := v.one("a")
	if d.Attempt != 2 || d.Deliveries != 2 || len(d.Failures) != 1 {
		v.failf("after reopening: %+v, want attempt 2, delivery 2, one failure", d)
	}
	v.sameCause(d.Failures[0], cause("x"))
}

func reopenDelayed(v *env) {
	v.put("a", "b", "c")
	ds := v.take(3)
	v.end(ds[0], forebay.Retry, 10*v.unit)
	v.end(ds[1], forebay.Release, 10*v.unit)
	v.ack(ds[2])
	v.send(msg("d", notBefore(time.Now().Add(10*v.unit))))
	v.reopen()
	v.counts(testQueue, 0, 0, 3, 0)
	v.none()
	v.pass(9 * v.unit)
	v.none()
	v.pass(2 * v.unit)
	v.wantSet(v.take(10), "a", "b", "d")
}

func reopenDedup(v *env) {
	a := msg("a", withWindow(10*v.unit))
	if v.h.Cannot[DedupKeys] == "" {
		a.DedupKey = "k"
	}
	b := msg("b")
	v.send(a, b)
	v.ack(v.take(1)...) // a
	v.reopen()
	v.duplicate(v.send(a)[0], "a", false)
	v.duplicate(v.send(b)[0], "b", false)
	v.duplicate(v.send(msg("b", withBody("other")))[0], "b", true)
	if v.h.Cannot[DedupKeys] == "" {
		v.duplicate(v.send(msg("c", withKey("k"), withBody("payload of a")))[0], "a", false)
	}
	v.one("b")
	v.pass(11 * v.unit)
	v.reopen()
	v.fresh(v.send(a)[0], "a")
}

func reopenDead(v *env) {
	v.kill(msg("a"), "x")
	v.kill(msg("b"), "y")
	before := v.dead(engine.DeadQuery{})
	v.reopen()
	after := v.wantDead(engine.DeadQuery{}, "b", "a")
	for i, l := range after {
		v.same(l.Message, before[i].Message)
		v.sameCause(l.Cause, before[i].Cause)
		if l.Seq != before[i].Seq || !l.DiedAt.Equal(before[i].DiedAt) || l.Deliveries != before[i].Deliveries {
			v.failf("dead letter %+v was %+v before", l, before[i])
		}
	}
	v.counts(testQueue, 0, 0, 0, 2)
	v.codes(v.replay(after[1].Seq), "")
	v.reopen()
	v.one("a")
	v.wantDead(engine.DeadQuery{}, "b")
}

func reopenGroups(v *env) {
	v.putGroup("g", ids("g", 6)...)
	ds := v.take(3)
	v.want(ds, "g1", "g2", "g3")
	v.ack(ds[0])
	v.end(ds[2], forebay.Release, 0)
	v.end(ds[1], forebay.Retry, 5*v.unit)
	v.reopen()
	v.none() // g2 waits for its retry
	v.pass(6 * v.unit)
	last := map[string]int{"g": 1}
	for last["g"] < 6 {
		more := v.take(2)
		if len(more) == 0 {
			v.failf("nothing came after g%d", last["g"])
		}
		v.groupsInOrder(more, last)
		v.ack(more...)
		v.reopen()
	}
}

func reopenLimits(v *env) {
	want := engine.QueueLimits{Active: 2, Rate: engine.Rate{Count: 100, Per: time.Minute, Burst: 10}}
	v.limit(want)
	v.put(ids("m", 4)...)
	v.take(4)
	v.reopen()
	if got, err := able[engine.Limiter](v).QueueLimits(v.ctx, testQueue); err != nil || got != want {
		v.failf("limits after reopening are %+v, %v; want %+v", got, err, want)
	}
	if ds := v.take(4); len(ds) != 2 {
		v.failf("received %v, want two", idsOf(ds))
	}
}

func reopenOrder(v *env) {
	for _, id := range ids("m", 10) {
		v.put(id)
	}
	v.reopen()
	v.want(v.take(10), ids("m", 10)...)
}
