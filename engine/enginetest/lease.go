package enginetest

import (
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func leaseCases() []testCase {
	return []testCase{
		{name: "lease/runs out and costs no attempt", invariants: []int{4, 5}, run: leaseExpires},
		{name: "lease/extended", invariants: []int{3, 4}, run: leaseExtended},
		{name: "lease/extend sets, it does not add", invariants: []int{4}, run: leaseShortened},
		{name: "lease/a late receipt changes nothing", invariants: []int{3}, run: leaseFenced},
		{name: "lease/an expired receipt is void before it is handed out again", invariants: []int{3}, run: leaseExpiredReceipt},
		{name: "lease/extend answers per item", invariants: []int{3, 8}, run: leaseExtendMixed},
		{name: "lease/bounds of extend", invariants: []int{8}, run: leaseBounds},
		{name: "lease/ended by its consumer, the hand-out counts", invariants: []int{3, 4, 5}, run: leaseEnded},
		{name: "lease/its end wakes a receiver", invariants: []int{4, 11}, run: leaseEndWakes},
		{name: "lease/all of a batch end by themselves", invariants: []int{4}, run: leaseBatch},
	}
}

// short leases what is there for three units.
func (v *env) short(limit int) []forebay.Delivery {
	v.Helper()
	return v.receive(engine.Receive{Queue: testQueue, Max: limit, Lease: 3 * v.unit})
}

func leaseExpires(v *env) {
	v.put("a")
	for n := 1; n <= 4; n++ {
		start := time.Now()
		ds := v.short(1)
		v.want(ds, "a")
		v.exactly("the lease", ds[0].LeaseUntil.Sub(start), 3*v.unit)
		if ds[0].Deliveries != n || ds[0].Attempt != 1 || len(ds[0].Failures) != 0 {
			v.failf("delivery %d is %+v, want attempt 1 and no failures", n, ds[0])
		}
		v.pass(2 * v.unit)
		v.none()
		v.counts(testQueue, 0, 1, 0, 0)
		v.pass(2 * v.unit)
		v.counts(testQueue, 1, 0, 0, 0)
	}
	v.ack(v.one("a"))
}

func leaseExtended(v *env) {
	v.put("a")
	d := v.short(1)[0]
	for range 5 {
		v.pass(2 * v.unit)
		v.codes(v.extend(3*v.unit, d.Receipt), "")
	}
	v.none()
	v.ack(d)
	v.pass(10 * v.unit)
	v.none()
}

func leaseShortened(v *env) {
	v.put("a")
	d := v.one("a") // a long lease
	v.codes(v.extend(2*v.unit, d.Receipt), "")
	v.pass(v.unit)
	v.none()
	v.pass(2 * v.unit)
	v.one("a")
}

func leaseFenced(v *env) {
	v.put("a")
	first := v.short(1)[0]
	v.pass(4 * v.unit)
	second := v.one("a")
	if first.Receipt == second.Receipt {
		v.failf("two deliveries share receipt %q", first.Receipt)
	}
	for _, verdict := range []forebay.Verdict{forebay.Ack, forebay.Retry, forebay.Release, forebay.Dead} {
		s := forebay.Settlement{Receipt: first.Receipt, Verdict: verdict, Cause: cause("late")}
		v.codes(v.settle(s), forebay.CodeLeaseLost)
	}
	v.codes(v.extend(v.lease(), first.Receipt), forebay.CodeLeaseLost)
	v.counts(testQueue, 0, 1, 0, 0)
	v.none()
	v.ack(second)
	v.codes(v.extend(v.lease(), second.Receipt), forebay.CodeLeaseLost)
	v.codes(v.settle(acks([]forebay.Delivery{second, first})...), forebay.CodeLeaseLost, forebay.CodeLeaseLost)
}

func leaseExpiredReceipt(v *env) {
	v.put("a", "b")
	ds := v.short(2)
	v.want(ds, "a", "b")
	v.pass(4 * v.unit)
	v.codes(v.settle(acks(ds[:1])...), forebay.CodeLeaseLost)
	v.codes(v.extend(v.lease(), ds[1].Receipt), forebay.CodeLeaseLost)
	again := v.take(10)
	v.want(again, "a", "b")
	v.ack(again...)
}

func leaseExtendMixed(v *env) {
	v.put("a", "b", "c")
	ds := v.short(3)
	v.ack(ds[1])
	got := v.extend(10*v.unit, ds[0].Receipt, "", ds[1].Receipt, "no receipt", ds[2].Receipt)
	v.codes(got, "", forebay.CodeLeaseLost, forebay.CodeLeaseLost, forebay.CodeLeaseLost, "")
	v.pass(5 * v.unit)
	v.none()
	v.ack(ds[0], ds[2])
	if errs := v.extend(v.unit); len(errs) != 0 {
		v.failf("extend of nothing gave %v", errs)
	}
}

func leaseBounds(v *env) {
	v.put("a")
	d := v.one("a")
	for _, lease := range []time.Duration{-1, 1, engine.MinLease - 1, engine.MaxLease + time.Second} {
		errs, err := v.e.Extend(v.ctx, []forebay.Receipt{d.Receipt}, lease)
		if err == nil && len(errs) == 1 {
			err = errs[0]
		}
		if forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("extend by %v gave %v, want code invalid", lease, err)
		}
	}
	v.none()
	v.ack(d)
}

func leaseEnded(v *env) {
	v.put("a", "b", "c")
	ds := v.take(3)
	v.codes(v.extend(0, ds[0].Receipt, ds[2].Receipt, "no receipt"), "", "", forebay.CodeLeaseLost)
	v.counts(testQueue, 2, 1, 0, 0)
	v.codes(v.settle(acks(ds[:1])...), forebay.CodeLeaseLost)
	v.codes(v.extend(v.lease(), ds[2].Receipt), forebay.CodeLeaseLost)
	again := v.take(10)
	v.wantSet(again, "a", "c")
	for _, d := range again {
		if d.Deliveries != 2 || d.Attempt != 1 {
			v.failf("after its lease was ended: %+v, want delivery 2, attempt 1", d)
		}
	}
	v.ack(append(again, ds[1])...)
}

func leaseEndWakes(v *env) {
	v.put("a")
	d := v.one("a")
	start := time.Now()
	wait := v.afterAWhile(func() {
		if errs, err := v.e.Extend(v.ctx, receiptsOf([]forebay.Delivery{d}), 0); err != nil || errs[0] != nil {
			v.Errorf("extend: %v, %v", errs, err)
		}
	})
	ds := v.receive(engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit, Lease: v.lease()})
	wait()
	v.want(ds, "a")
	v.exactly("a wait for the end of a lease", time.Since(start), v.unit)
}

func leaseBatch(v *env) {
	v.put(ids("m", 200)...)
	ds := v.short(100)
	if len(ds) != 100 {
		v.failf("received %d of 100", len(ds))
	}
	v.ack(ds[:50]...)
	v.counts(testQueue, 100, 50, 0, 0)
	v.pass(4 * v.unit)
	v.counts(testQueue, 150, 0, 0, 0)
	v.wantSet(v.takeAll(testQueue), ids("m", 200)[50:]...)
}
