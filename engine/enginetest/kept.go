package enginetest

import (
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func keptCases() []testCase {
	return []testCase{
		{name: "kept/as any other lease while nothing ends", invariants: []int{3, 4}, needs: Keeping, run: keptOpen},
		{name: "kept/live after a reopening, with the same receipts", invariants: []int{3, 4}, reopens: true, needs: Keeping, run: keptReceipts},
		{name: "kept/they end on time, and the hand-out counts", invariants: []int{4, 5}, reopens: true, needs: Keeping, run: keptEnds},
		{name: "kept/one that ended while nobody was there", invariants: []int{4, 5}, reopens: true, needs: Keeping, run: keptEnded},
		{name: "kept/extended ones keep their new end", invariants: []int{4}, reopens: true, needs: Keeping, run: keptExtended},
		{name: "kept/others of the queue are freed", invariants: []int{4}, reopens: true, needs: Keeping, run: keptOthers},
		{name: "kept/what was settled stays settled", invariants: []int{1, 3}, reopens: true, needs: Keeping, run: keptSettled},
		{name: "kept/given back after a reopening", invariants: []int{4, 5}, reopens: true, needs: Keeping, run: keptGivenBack},
		{name: "kept/limits count them", invariants: []int{7}, reopens: true, needs: Keeping, run: keptLimits},
		{name: "kept/a job stays active, and stays asked to stop", invariants: []int{4}, reopens: true, needs: Keeping, run: keptJobs},
		{name: "kept/many, over many reopenings", invariants: []int{3, 4}, reopens: true, needs: Keeping, run: keptMany},
	}
}

// keep takes what is there now under kept leases.
func (v *env) keep(limit int, lease time.Duration) []forebay.Delivery {
	v.Helper()
	return v.receive(engine.Receive{Queue: testQueue, Max: limit, Lease: lease, Kept: true})
}

func keptOpen(v *env) {
	v.put("a", "b", "c")
	ds := v.keep(3, 3*v.unit)
	v.ack(ds[0])
	v.codes(v.extend(10*v.unit, ds[1].Receipt), "")
	v.pass(4 * v.unit)
	v.one("c")
	v.ack(ds[1])
	v.codes(v.settle(acks(ds[2:])...), forebay.CodeLeaseLost)
}

func keptReceipts(v *env) {
	v.put(ids("m", 6)...)
	ds := v.keep(5, v.lease())
	for range 3 {
		v.reopen()
		v.counts(testQueue, 1, 5, 0, 0)
		d := v.one("m6")
		v.end(d, forebay.Release, 0)
	}
	s := acks(ds)
	s[1].Verdict, s[1].Cause = forebay.Retry, cause("x")
	s[2].Verdict = forebay.Release
	s[3].Verdict, s[3].Cause = forebay.Dead, cause("x")
	v.codes(v.settle(s...), "", "", "", "", "")
	v.codes(v.settle(s...), forebay.CodeLeaseLost, forebay.CodeLeaseLost, forebay.CodeLeaseLost, forebay.CodeLeaseLost, forebay.CodeLeaseLost)
	again := make(map[string]forebay.Delivery)
	for _, d := range v.take(10) {
		again[d.ID] = d
	}
	if len(again) != 3 || again["m2"].Attempt != 2 || again["m2"].Deliveries != 2 || again["m3"].Deliveries != 1 {
		v.failf("received %+v, want m2 as attempt 2, m3 as new, m6", again)
	}
}

func keptEnds(v *env) {
	v.put("a", "b")
	ds := v.keep(1, 10*v.unit)
	v.pass(4 * v.unit)
	v.reopen()
	v.want(v.take(10), "b")
	v.pass(5 * v.unit)
	v.none()
	v.pass(2 * v.unit)
	again := v.take(10)
	v.want(again, "a")
	if again[0].Deliveries != 2 || again[0].Attempt != 1 {
		v.failf("after a kept lease: %+v, want delivery 2, attempt 1", again[0])
	}
	v.codes(v.settle(acks(ds)...), forebay.CodeLeaseLost)
	v.reopen()
	v.codes(v.settle(acks(ds)...), forebay.CodeLeaseLost)
	v.wantSet(v.take(10), "a", "b")
}

func keptEnded(v *env) {
	v.put("a", "b")
	first := v.keep(1, 2*v.unit)
	v.keep(1, 20*v.unit)
	v.pass(3 * v.unit)
	v.reopen()
	d := v.one("a")
	if d.Deliveries != 2 || d.Receipt == first[0].Receipt {
		v.failf("after a kept lease that ended: %+v", d)
	}
	v.codes(v.settle(acks(first)...), forebay.CodeLeaseLost)
	v.ack(d)
}

func keptExtended(v *env) {
	v.put("a", "b", "c", "d")
	ds := v.keep(4, 10*v.unit)
	v.codes(v.extend(30*v.unit, ds[0].Receipt), "")
	v.codes(v.extend(4*v.unit, ds[1].Receipt), "")
	v.codes(v.extend(0, ds[2].Receipt), "")
	v.reopen()
	v.one("c")
	v.pass(5 * v.unit)
	v.one("b")
	v.pass(6 * v.unit)
	v.one("d")
	v.codes(v.extend(2*v.unit, ds[0].Receipt), "")
	v.reopen()
	v.wantSet(v.take(10), "b", "c", "d")
	v.pass(3 * v.unit)
	v.one("a")
}

func keptOthers(v *env) {
	v.put(ids("m", 6)...)
	v.take(2)
	kept := v.keep(2, v.lease())
	v.take(1)
	v.reopen()
	v.counts(testQueue, 4, 2, 0, 0)
	v.wantSet(v.take(10), "m1", "m2", "m5", "m6")
	v.ack(kept...)
	v.counts(testQueue, 0, 4, 0, 0)
}

func keptSettled(v *env) {
	v.put(ids("m", 5)...)
	ds := v.keep(5, v.lease())
	v.ack(ds[0])
	v.end(ds[1], forebay.Retry, 0)
	v.end(ds[2], forebay.Release, 0)
	v.end(ds[3], forebay.Retry, 10*v.unit)
	v.reopen()
	v.counts(testQueue, 2, 1, 1, 0)
	v.codes(v.settle(acks(ds[:4])...), forebay.CodeLeaseLost, forebay.CodeLeaseLost, forebay.CodeLeaseLost, forebay.CodeLeaseLost)
	again := v.keep(10, v.lease())
	v.wantSet(again, "m2", "m3")
	for _, d := range again {
		if want := map[string]int{"m2": 2, "m3": 1}[d.ID]; d.Deliveries != want {
			v.failf("%q came as delivery %d, want %d", d.ID, d.Deliveries, want)
		}
	}
	v.reopen()
	v.none()
	v.ack(append(again, ds[4])...)
	v.counts(testQueue, 0, 0, 1, 0)
}

// keptGivenBack gives messages back that the engine has not looked at since it was
// opened: each must come once.
func keptGivenBack(v *env) {
	for name, back := range map[string]func(d forebay.Delivery){
		"released": func(d forebay.Delivery) { v.end(d, forebay.Release, 0) },
		"retried":  func(d forebay.Delivery) { v.end(d, forebay.Retry, 0) },
		"ended":    func(d forebay.Delivery) { v.codes(v.extend(0, d.Receipt), "") },
		"later": func(d forebay.Delivery) {
			v.end(d, forebay.Retry, v.unit)
			v.pass(2 * v.unit)
		},
	} {
		names := ids(name, 5)
		v.put(names...)
		ds := v.keep(4, v.lease())
		v.reopen()
		back(ds[1])
		back(ds[3])
		v.reopen()
		back(ds[0])
		got := v.takeAll(testQueue)
		v.wantSet(got, names[0], names[1], names[3], names[4])
		v.ack(append(got, ds[2])...)
		v.none()
	}
}

func keptLimits(v *env) {
	if v.h.Cannot[Limiting] != "" {
		return
	}
	v.limit(engine.QueueLimits{Active: 3, KeyActive: 1})
	v.send(msg("a", withLimit("k")), msg("b", withLimit("k")), msg("c"), msg("d"), msg("e"))
	ds := v.keep(2, v.lease())
	v.want(ds, "a", "c")
	v.reopen()
	one := v.take(10)
	v.want(one, "d") // b: the key is taken
	v.none()
	v.ack(one...)
	v.want(v.take(10), "e")
	v.ack(ds[0])
	v.one("b")
}

func keptJobs(v *env) {
	if v.h.Cannot[Ledger] != "" {
		return
	}
	v.add("a", "b", "c")
	ds := v.keep(3, 10*v.unit)
	v.cancel("enough", "b", "c")
	v.reopen()
	v.is(forebay.StateActive, "a", "b", "c")
	v.codes(v.extend(10*v.unit, receiptsOf(ds)...), "", forebay.CodeCancelled, forebay.CodeCancelled)
	v.ack(ds[0])
	v.is(forebay.StateCompleted, "a")
	v.reopen()
	v.codes(v.extend(10*v.unit, ds[1].Receipt), forebay.CodeCancelled)
	v.end(ds[1], forebay.Release, 0)
	v.is(forebay.StateCancelled, "b")
	v.pass(11 * v.unit)
	v.is(forebay.StateCancelled, "c")
	v.story("a", forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryCompleted)
	v.none()
}

func keptMany(v *env) {
	const n = 300
	v.put(ids("m", n)...)
	held := make(map[string]forebay.Delivery)
	for round := range 6 {
		for range 4 {
			for _, d := range v.keep(1+round*3, v.lease()) {
				if old, twice := held[d.ID]; twice {
					v.failf("%q came as delivery %d while %q holds it", d.ID, d.Deliveries, old.Receipt)
				}
				held[d.ID] = d
			}
		}
		v.reopen()
		v.counts(testQueue, n-int64(len(held)), int64(len(held)), 0, 0)
	}
	for i, d := range v.takeAll(testQueue) {
		if _, twice := held[d.ID]; twice || d.Deliveries != 1 {
			v.failf("%q came as delivery %d", d.ID, d.Deliveries)
		}
		held[fmt.Sprint(i, d.ID)] = d
	}
	if len(held) != n {
		v.failf("%d of %d came", len(held), n)
	}
	for _, d := range held {
		v.ack(d)
	}
	v.counts(testQueue, 0, 0, 0, 0)
}
