package enginetest

import (
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func lateCases() []testCase {
	return []testCase{
		{name: "late/tells where a message is, by any receipt", needs: LateSettling, run: lateTells},
		{name: "late/what is no receipt", invariants: []int{8}, needs: LateSettling, run: lateInvalid},
		{name: "late/ack of what waits", invariants: []int{1}, needs: LateSettling, run: lateAckWaiting},
		{name: "late/ack of what somebody else holds", invariants: []int{3}, needs: LateSettling, run: lateAckActive},
		{name: "late/ack of what is delayed", needs: LateSettling, run: lateAckDelayed},
		{name: "late/ack lets a group go on", invariants: []int{6, 11}, needs: LateSettling, run: lateAckGroup},
		{name: "late/extend sets the current lease", invariants: []int{4}, needs: LateSettling, run: lateExtend},
		{name: "late/extend by nothing ends the current lease", invariants: []int{4}, needs: LateSettling, run: lateExtendZero},
		{name: "late/never another message", invariants: []int{3}, needs: LateSettling, run: lateOther},
		{name: "late/jobs", needs: LateSettling, run: lateJobs},
		{name: "late/side by side with settle", invariants: []int{3}, needs: LateSettling, run: lateConcurrently},
		{name: "late/ends what is active", invariants: []int{3, 6}, needs: LateSettling, run: lateEndActive},
		{name: "late/bounds", invariants: []int{8}, needs: LateSettling, run: lateBounds},
		{name: "late/receipts lead there after a reopening", invariants: []int{1}, reopens: true, needs: LateSettling, run: lateReopen},
	}
}

// late wants the messages of receipts to be there.
func (v *env) late(where engine.Where, ds ...forebay.Delivery) {
	v.Helper()
	states, err := able[engine.Late](v).Late(v.ctx, receiptsOf(ds))
	if err != nil || len(states) != len(ds) {
		v.failf("late gave %d states for %d receipts, %v", len(states), len(ds), err)
	}
	for i, s := range states {
		queue := ds[i].Queue
		if where == engine.WhereGone {
			queue = s.Queue
		}
		if s.Where != where || s.Err != nil || s.Queue != queue {
			v.failf("%q is at %+v, want %s", ds[i].ID, s, where)
		}
	}
}

func (v *env) ackLate(receipts ...forebay.Receipt) []error {
	v.Helper()
	errs, err := able[engine.Late](v).AckLate(v.ctx, receipts)
	if err != nil {
		v.failf("late ack: %v", err)
	}
	return errs
}

func (v *env) extendLate(lease time.Duration, receipts ...forebay.Receipt) []error {
	v.Helper()
	errs, err := able[engine.Late](v).ExtendLate(v.ctx, receipts, lease)
	if err != nil {
		v.failf("late extend: %v", err)
	}
	return errs
}

// handOuts gives so many hand-outs of the one message that is there, all but the last
// of them over.
func (v *env) handOuts(n int) []forebay.Delivery {
	v.Helper()
	var ds []forebay.Delivery
	for range n {
		if len(ds) > 0 {
			v.pass(4 * v.unit)
		}
		ds = append(ds, v.short(1)...)
	}
	return ds
}

func lateTells(v *env) {
	v.put("a")
	ds := v.handOuts(3)
	v.late(engine.WhereActive, ds...)
	v.pass(4 * v.unit)
	v.late(engine.WhereWaiting, ds...)
	d := v.one("a")
	v.end(d, forebay.Retry, 5*v.unit)
	v.late(engine.WhereDelayed, append(ds, d)...)
	v.pass(6 * v.unit)
	v.late(engine.WhereWaiting, append(ds, d)...)
	v.ack(v.one("a"))
	v.late(engine.WhereGone, append(ds, d)...)
	v.put("b")
	d = v.one("b")
	v.end(d, forebay.Dead, 0)
	v.late(engine.WhereGone, d)
}

func lateInvalid(v *env) {
	v.put("a")
	d := v.one("a")
	changed := strings.Map(func(r rune) rune { // another character of the same kind, in each place
		switch {
		case '0' <= r && r < '9' || 'a' <= r && r < 'z' || 'A' <= r && r < 'Z':
			return r + 1
		case r == '9' || r == 'z' || r == 'Z':
			return '0'
		}
		return r
	}, string(d.Receipt))
	rs := []forebay.Receipt{"", "no receipt", d.Receipt, forebay.Receipt(changed), d.Receipt + "a", d.Receipt[:len(d.Receipt)-1]}
	want := []forebay.Code{forebay.CodeInvalid, forebay.CodeInvalid, "", forebay.CodeInvalid, forebay.CodeInvalid, forebay.CodeInvalid}
	states, err := able[engine.Late](v).Late(v.ctx, rs)
	if err != nil || len(states) != len(rs) {
		v.failf("late gave %+v, %v", states, err)
	}
	for i, s := range states {
		if forebay.CodeOf(s.Err) != want[i] || s.Err != nil && s.Where != "" {
			v.failf("%q gave %+v, want code %q", rs[i], s, want[i])
		}
	}
	v.codes(v.extendLate(v.lease(), rs...), want...)
	v.counts(testQueue, 0, 1, 0, 0)
	v.codes(v.ackLate(rs...), want...)
	v.counts(testQueue, 0, 0, 0, 0)
}

func lateAckWaiting(v *env) {
	v.put("a", "b", "c", "d")
	ds := v.short(3)
	v.pass(4 * v.unit)
	v.codes(v.ackLate(ds[0].Receipt, ds[2].Receipt, ds[0].Receipt), "", "", "")
	v.counts(testQueue, 2, 0, 0, 0)
	v.want(v.take(10), "b", "d")
	v.codes(v.ackLate(ds[0].Receipt), "") // gone already
	v.late(engine.WhereGone, ds[0], ds[2])
	v.duplicate(v.send(msg("a"))[0], "a", false) // it was acked, as by Settle
	if s := v.stats(testQueue); s.Completed != 2 {
		v.failf("%d are counted as completed, want 2", s.Completed)
	}
}

func lateAckActive(v *env) {
	v.put("a")
	ds := v.handOuts(3)
	v.codes(v.ackLate(ds[0].Receipt), "")
	v.counts(testQueue, 0, 0, 0, 0)
	v.codes(v.settle(acks(ds[2:])...), forebay.CodeLeaseLost)
	v.codes(v.extend(v.lease(), ds[2].Receipt), forebay.CodeLeaseLost)
	v.codes(v.ackLate(receiptsOf(ds)...), "", "", "")
	v.pass(4 * v.unit)
	v.none()
	v.put("b")
	d := v.one("b")
	v.codes(v.ackLate(d.Receipt), "") // a live receipt will do
	v.codes(v.settle(acks([]forebay.Delivery{d})...), forebay.CodeLeaseLost)
}

func lateAckDelayed(v *env) {
	v.put("a", "b")
	ds := v.take(2)
	v.end(ds[0], forebay.Retry, 5*v.unit)
	v.end(ds[1], forebay.Release, 5*v.unit)
	v.codes(v.ackLate(ds[0].Receipt), "")
	v.counts(testQueue, 0, 0, 1, 0)
	v.pass(6 * v.unit)
	v.counts(testQueue, 1, 0, 0, 0)
	v.one("b")
}

func lateAckGroup(v *env) {
	v.putGroup("g", ids("g", 5)...)
	ds := v.short(2)
	v.pass(4 * v.unit)
	v.codes(v.ackLate(ds[1].Receipt), "") // g2 waits behind g1
	first := v.take(1)
	v.want(first, "g1")
	start := time.Now()
	wait := v.afterAWhile(func() {
		if errs, err := able[engine.Late](v).AckLate(v.ctx, receiptsOf(ds[:1])); err != nil || errs[0] != nil {
			v.Errorf("late ack: %v, %v", errs, err)
		}
	})
	next := v.receive(engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit, Lease: v.lease()})
	wait()
	v.want(next, "g3")
	v.exactly("a wait for the next of the group", time.Since(start), v.unit)
	v.end(next[0], forebay.Retry, 50*v.unit)
	v.codes(v.ackLate(next[0].Receipt), "")
	v.want(v.take(10), "g4", "g5")
}

func lateBounds(v *env) {
	v.put("a")
	d := v.one("a")
	l := able[engine.Late](v)
	for _, lease := range []time.Duration{-1, 1, engine.MinLease - 1, engine.MaxLease + time.Second} {
		if _, err := l.ExtendLate(v.ctx, []forebay.Receipt{d.Receipt}, lease); forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("late extend by %v gave %v, want code invalid", lease, err)
		}
	}
	many := make([]forebay.Receipt, engine.MaxReceive+1)
	if _, err := l.AckLate(v.ctx, many); forebay.CodeOf(err) != forebay.CodeInvalid {
		v.failf("late ack of too many gave %v, want code invalid", err)
	}
	if _, err := l.Late(v.ctx, many); forebay.CodeOf(err) != forebay.CodeInvalid {
		v.failf("late of too many gave %v, want code invalid", err)
	}
	v.ack(d)
}

func lateReopen(v *env) {
	v.put("a", "b", "c", "d")
	ds := v.take(3)
	v.ack(ds[0])
	v.reopen()
	v.late(engine.WhereGone, ds[0])
	v.late(engine.WhereWaiting, ds[1:]...)
	v.codes(v.extendLate(0, ds[1].Receipt), "")
	v.codes(v.ackLate(receiptsOf(ds[:2])...), "", "")
	v.reopen()
	v.wantSet(v.take(10), "c", "d")
	v.late(engine.WhereActive, ds[2])
	v.codes(v.ackLate(ds[2].Receipt), "")
	v.counts(testQueue, 0, 1, 0, 0)
}
