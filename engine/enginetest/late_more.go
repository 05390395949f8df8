package enginetest

import (
	"sync/atomic"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func lateExtend(v *env) {
	v.put("a")
	ds := v.handOuts(2)
	v.codes(v.extendLate(20*v.unit, ds[0].Receipt), "")
	v.pass(10 * v.unit)
	v.none()
	v.codes(v.extendLate(2*v.unit, ds[0].Receipt), "") // it sets, it does not add
	v.pass(3 * v.unit)
	v.counts(testQueue, 1, 0, 0, 0)
	v.codes(v.extendLate(v.lease(), receiptsOf(ds)...), "", "") // it waits: nothing is changed
	d := v.one("a")
	if d.Deliveries != 3 {
		v.failf("it came as delivery %d, want 3", d.Deliveries)
	}
	v.ack(d)
	v.codes(v.extendLate(v.lease(), receiptsOf(ds)...), forebay.CodeNotFound, forebay.CodeNotFound)
}

func lateExtendZero(v *env) {
	v.put("a")
	v.putGroup("g", "g1", "g2", "g3")
	old := v.short(4)
	v.pass(4 * v.unit)
	now := v.take(4)
	if len(now) != 4 {
		v.failf("received %v, want all four", idsOf(now))
	}
	byID := make(map[string]forebay.Receipt)
	for _, d := range old {
		byID[d.ID] = d.Receipt
	}
	v.codes(v.extendLate(0, byID["a"], byID["g1"]), "", "")
	again := v.take(10)
	v.wantSet(again, "a", "g1")
	for _, d := range again {
		if d.Deliveries != 3 {
			v.failf("%q came as delivery %d, want 3", d.ID, d.Deliveries)
		}
	}
}

// lateOther has a message sent again after it was gone: old receipts are not of it.
func lateOther(v *env) {
	v.send(msg("a", withWindow(2*v.unit)))
	old := v.one("a")
	v.ack(old)
	v.pass(3 * v.unit)
	v.fresh(v.send(msg("a"))[0], "a")
	v.late(engine.WhereGone, old)
	v.codes(v.ackLate(old.Receipt), "")
	v.codes(v.extendLate(0, old.Receipt), forebay.CodeNotFound)
	now := v.one("a")
	v.codes(v.ackLate(old.Receipt), "")
	v.counts(testQueue, 0, 1, 0, 0)
	v.ack(now)
}

func lateJobs(v *env) {
	if v.h.Cannot[Ledger] != "" {
		return
	}
	v.add("a", "b")
	ds := v.one2("a", "b")
	v.codes(v.ackLate(ds[0].Receipt), "")
	v.is(forebay.StateCompleted, "a")
	v.end(ds[1], forebay.Release, 0)
	v.codes(v.ackLate(receiptsOf(ds)...), "", forebay.CodeConflict)
	v.is(forebay.StateWaiting, "b")
	d := v.one("b")
	v.cancel("enough", "b")
	v.codes(v.extendLate(v.lease(), ds[1].Receipt), forebay.CodeCancelled)
	v.codes(v.extendLate(0, ds[1].Receipt), forebay.CodeCancelled)
	v.is(forebay.StateCancelled, "b")
	v.codes(v.settle(acks([]forebay.Delivery{d})...), forebay.CodeLeaseLost)
}

// lateConcurrently has old and live receipts of the same messages raced by many: each
// message is completed once.
func lateConcurrently(v *env) {
	const n = 40
	v.put(ids("m", n)...)
	old := v.short(n)
	v.pass(4 * v.unit)
	now := v.take(n)
	var settled atomic.Int64
	v.each(6, func(i int) error {
		if i%2 == 0 {
			_, err := able[engine.Late](v).AckLate(v.ctx, receiptsOf(old))
			return err
		}
		errs, err := v.e.Settle(v.ctx, acks(now))
		for _, one := range errs {
			if one == nil {
				settled.Add(1)
			} else if forebay.CodeOf(one) != forebay.CodeLeaseLost {
				return one
			}
		}
		return err
	})
	if s := v.stats(testQueue); s.Completed != n || settled.Load() > n {
		v.failf("%d are completed, %d by settle; want %d in all", s.Completed, settled.Load(), n)
	}
	v.counts(testQueue, 0, 0, 0, 0)
	v.late(engine.WhereGone, old...)
}
