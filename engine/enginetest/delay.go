package enginetest

import (
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func delayCases() []testCase {
	return []testCase{
		{name: "delay/holds what is sent, and wakes who waits", invariants: []int{11}, needs: QueueDelays, run: delaySent},
		{name: "delay/reaches what waits already", needs: QueueDelays, run: delayRaised},
		{name: "delay/lowered, it wakes a receiver", invariants: []int{11}, needs: QueueDelays, run: delayLowered},
		{name: "delay/not what was handed out before", needs: QueueDelays, run: delayBegun},
		{name: "delay/groups keep their order", invariants: []int{6}, needs: QueueDelays, run: delayGroups},
		{name: "delay/beside a time of the message's own", needs: QueueDelays, run: delayBoth},
		{name: "delay/with limits of keys", invariants: []int{7}, needs: QueueDelays, run: delayKeys},
		{name: "delay/with limits of keys, whose turn it is", invariants: []int{7}, needs: QueueDelays, run: delayTurns},
		{name: "delay/of one queue only, and read back", needs: QueueDelays, run: delayQueues},
		{name: "delay/wrong ones are refused", invariants: []int{8}, needs: QueueDelays, run: delayInvalid},
		{name: "delay/what is purged is not delayed", needs: QueueDelays, run: delayPurged},
		{name: "delay/many that wait, counted and in order", invariants: []int{6, 10}, needs: QueueDelays, run: delayMany},
		{name: "delay/after a reopening", invariants: []int{1}, reopens: true, needs: QueueDelays, run: delayReopen},
	}
}

func (v *env) delay(d time.Duration) {
	v.Helper()
	if err := able[engine.Delayer](v).SetDelay(v.ctx, testQueue, d); err != nil {
		v.failf("set a delay of %v: %v", d, err)
	}
}

func delaySent(v *env) {
	v.delay(10 * v.unit)
	v.put("a")
	v.putGroup("g", "g1")
	v.none()
	v.counts(testQueue, 0, 0, 2, 0)
	v.pass(5 * v.unit)
	v.put("b")
	v.counts(testQueue, 0, 0, 3, 0)
	begin := time.Now()
	ds := v.receive(engine.Receive{Queue: testQueue, Max: 10, Wait: 20 * v.unit, Lease: v.lease()})
	v.wantSet(ds, "a", "g1")
	v.exactly("the wait", time.Since(begin), 5*v.unit)
	v.counts(testQueue, 0, 2, 1, 0)
	v.pass(5 * v.unit)
	v.counts(testQueue, 1, 2, 0, 0)
	v.one("b")
}

func delayRaised(v *env) {
	v.put("a")
	v.putGroup("g", "g1")
	v.pass(4 * v.unit)
	v.put("b")
	v.putGroup("g", "g2")
	v.counts(testQueue, 4, 0, 0, 0)
	v.delay(10 * v.unit)
	v.none()
	v.counts(testQueue, 0, 0, 4, 0)
	v.pass(7 * v.unit)
	v.counts(testQueue, 2, 0, 2, 0)
	ds := v.take(10)
	v.wantSet(ds, "a", "g1")
	v.ack(ds...)
	v.none()
	v.delay(20 * v.unit)
	v.pass(4 * v.unit)
	v.none()
	v.counts(testQueue, 0, 0, 2, 0)
	v.pass(10 * v.unit)
	v.wantSet(v.take(10), "b", "g2")
}

func delayLowered(v *env) {
	v.delay(100 * v.unit)
	v.put("a", "b")
	v.putGroup("g", "g1", "g2")
	v.none()
	v.pass(5 * v.unit)
	got := make(chan []forebay.Delivery, 1)
	v.each(2, func(i int) error {
		if i == 1 {
			v.pass(v.unit)
			return able[engine.Delayer](v).SetDelay(v.ctx, testQueue, 3*v.unit)
		}
		ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 10, Wait: 50 * v.unit, Lease: v.lease()})
		got <- ds
		return err
	})
	v.wantSet(<-got, "a", "b", "g1", "g2")
	v.put("c")
	v.none()
	v.delay(0)
	v.counts(testQueue, 1, 4, 0, 0)
	v.one("c")
}

func delayBegun(v *env) {
	v.put("retried", "expired", "released")
	v.putGroup("g", "g1", "g2")
	ds := v.short(4) // all but g2, or with it and one less
	for _, d := range ds {
		if d.ID == "retried" {
			v.end(d, forebay.Retry, 0)
		}
		if d.ID == "released" {
			v.end(d, forebay.Release, 0)
		}
	}
	v.delay(50 * v.unit)
	v.pass(4 * v.unit) // the leases end
	again := map[string]bool{}
	for _, d := range v.take(10) {
		again[d.ID] = true
	}
	for _, d := range ds {
		if again[d.ID] != (d.ID != "released") { // that hand-out never was
			v.failf("%q was handed out before; handed out again: %v, want all of these but what was released", d.ID, again)
		}
	}
	if len(again) > len(ds) {
		v.failf("handed out are %v, want nothing that was not before", again)
	}
}

func delayQueues(v *env) {
	v.delay(10 * v.unit)
	v.send(msg("other", inQueue("r")))
	v.want(v.takeAll("r"), "other")
	for queue, want := range map[string]time.Duration{testQueue: 10 * v.unit, "r": 0, "nobody": 0} {
		if d, err := able[engine.Delayer](v).Delay(v.ctx, queue); err != nil || d != want {
			v.failf("the delay of %q is %v, %v; want %v", queue, d, err, want)
		}
	}
	if _, ok := engine.As[engine.Limiter](v.e); ok { // neither undoes the other
		v.limit(engine.QueueLimits{Active: 1})
		v.delay(5 * v.unit)
		l, err := able[engine.Limiter](v).QueueLimits(v.ctx, testQueue)
		d, derr := able[engine.Delayer](v).Delay(v.ctx, testQueue)
		if err != nil || derr != nil || l.Active != 1 || d != 5*v.unit {
			v.failf("limits are %+v, %v, the delay %v, %v", l, err, d, derr)
		}
	}
}

func delayInvalid(v *env) {
	for _, d := range []time.Duration{-1, forebay.MaxDelay + 1} {
		if err := able[engine.Delayer](v).SetDelay(v.ctx, testQueue, d); forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("a delay of %v gave %v, want it refused as invalid", d, err)
		}
	}
	if err := able[engine.Delayer](v).SetDelay(v.ctx, "", v.unit); forebay.CodeOf(err) != forebay.CodeInvalid {
		v.failf("a delay of no queue gave %v, want it refused as invalid", err)
	}
	v.put("a")
	v.one("a")
}

func delayPurged(v *env) {
	v.put("begun")
	d := v.one("begun")
	soon := notBefore(time.Now().Add(v.unit))
	v.send(msg("soon", soon), msg("h1", inGroup("h"), soon))
	v.put("a")
	v.putGroup("g", "g1", "g2")
	v.pass(2 * v.unit)
	v.delay(10 * v.unit)
	v.none()
	v.purge(testQueue)
	v.counts(testQueue, 0, 1, 0, 0)
	v.end(d, forebay.Retry, 0)
	v.counts(testQueue, 1, 0, 0, 0)
	v.ack(v.one("begun"))
	v.putGroup("g", "g3")
	v.put("b")
	v.counts(testQueue, 0, 0, 2, 0)
	v.pass(11 * v.unit)
	v.wantSet(v.take(10), "g3", "b")
}

func delayReopen(v *env) {
	v.put("a")
	v.putGroup("g", "g1", "g2")
	v.delay(20 * v.unit)
	v.reopen()
	v.none()
	v.counts(testQueue, 0, 0, 3, 0)
	if d, err := able[engine.Delayer](v).Delay(v.ctx, testQueue); err != nil || d != 20*v.unit {
		v.failf("the delay is %v, %v after a reopening", d, err)
	}
	v.pass(5 * v.unit)
	v.putGroup("g", "g3")
	v.counts(testQueue, 0, 0, 4, 0)
	v.pass(16 * v.unit)
	ds := v.take(10)
	v.wantSet(ds, "a", "g1", "g2")
	v.ack(ds...)
	v.reopen()
	v.counts(testQueue, 0, 0, 1, 0)
	v.pass(5 * v.unit)
	v.one("g3")
	if _, ok := engine.As[engine.Limiter](v.e); !ok {
		return
	}
	for i := range 20 { // together, neither undoes the other
		v.each(2, func(of int) error {
			if of == 0 {
				return able[engine.Delayer](v).SetDelay(v.ctx, testQueue, time.Duration(i)*v.unit)
			}
			return able[engine.Limiter](v).SetLimits(v.ctx, testQueue, engine.QueueLimits{Active: i})
		})
		v.reopen()
		l, err := able[engine.Limiter](v).QueueLimits(v.ctx, testQueue)
		d, derr := able[engine.Delayer](v).Delay(v.ctx, testQueue)
		if err != nil || derr != nil || l.Active != i || d != time.Duration(i)*v.unit {
			v.failf("limits are %+v, %v, the delay %v, %v after a reopening; want %d", l, err, d, derr, i)
		}
	}
}
