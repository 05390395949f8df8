package enginetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func limitCases() []testCase {
	return []testCase{
		{name: "limit/most active", invariants: []int{7}, needs: Limiting, run: limitActive},
		{name: "limit/most active of a key", invariants: []int{7}, needs: Limiting, run: limitKeyActive},
		{name: "limit/counted from live leases", invariants: []int{4, 7}, needs: Limiting, run: limitExpiry},
		{name: "limit/pause and resume", invariants: []int{7}, needs: Limiting, run: limitPause},
		{name: "limit/raised, it wakes a receiver", invariants: []int{7, 11}, needs: Limiting, run: limitWakes},
		{name: "limit/read back, and lifted", needs: Limiting, run: limitReadBack},
		{name: "limit/wrong ones are refused", invariants: []int{8}, needs: Limiting, run: limitInvalid},
		{name: "limit/with many consumers", invariants: []int{7}, needs: Limiting, run: limitConcurrently},
		{name: "limit/of one queue only", invariants: []int{7}, needs: Limiting, run: limitQueues},
	}
}

func (v *env) limit(l engine.QueueLimits) {
	v.Helper()
	if err := able[engine.Limiter](v).SetLimits(v.ctx, testQueue, l); err != nil {
		v.failf("set limits %+v: %v", l, err)
	}
}

func limitActive(v *env) {
	v.limit(engine.QueueLimits{Active: 3})
	v.put(ids("m", 10)...)
	ds := v.take(10)
	v.want(ds, "m1", "m2", "m3")
	v.none()
	v.counts(testQueue, 7, 3, 0, 0)
	v.ack(ds[0])
	v.one("m4")
	v.end(ds[1], forebay.Retry, v.lease())
	v.one("m5")
	v.none()
}

func limitKeyActive(v *env) {
	v.limit(engine.QueueLimits{KeyActive: 2})
	for _, id := range ids("a", 4) {
		v.send(msg(id, withLimit("ka")))
	}
	for _, id := range ids("b", 3) {
		v.send(msg(id, withLimit("kb")))
	}
	v.put("free1", "free2", "free3") // no key, no limit
	ds := v.take(10)
	v.wantSet(ds, "a1", "a2", "b1", "b2", "free1", "free2", "free3")
	v.none()
	v.ack(ds[0], ds[1])
	v.wantSet(v.take(10), "a3", "a4")
}

func limitExpiry(v *env) {
	v.limit(engine.QueueLimits{Active: 2, KeyActive: 1})
	v.send(msg("a", withLimit("k")), msg("b", withLimit("k")), msg("c"), msg("d"))
	v.want(v.short(10), "a", "c")
	v.none()
	v.pass(4 * v.unit)
	if ds := v.take(10); len(ds) != 2 {
		v.failf("received %v after the leases had run out, want two", idsOf(ds))
	}
	v.none()
}

func limitPause(v *env) {
	v.limit(engine.QueueLimits{Paused: true})
	v.put("a", "b")
	v.none()
	v.counts(testQueue, 2, 0, 0, 0)
	v.limit(engine.QueueLimits{})
	ds := v.take(1)
	v.limit(engine.QueueLimits{Paused: true})
	v.codes(v.extend(v.lease(), ds[0].Receipt), "") // what is out may end
	v.ack(ds...)
	v.none()
	v.limit(engine.QueueLimits{})
	v.one("b")
}

func limitWakes(v *env) {
	v.limit(engine.QueueLimits{Paused: true})
	v.put("a", "b")
	start := time.Now()
	wait := v.afterAWhile(func() { v.limit(engine.QueueLimits{Active: 1}) })
	ds := v.receive(engine.Receive{Queue: testQueue, Max: 10, Wait: 60 * v.unit, Lease: v.lease()})
	wait()
	v.want(ds, "a")
	v.exactly("a wait for the resumed queue", time.Since(start), v.unit)

	start = time.Now()
	wait = v.afterAWhile(func() {
		if errs, err := v.e.Settle(v.ctx, acks(ds)); err != nil || errs[0] != nil {
			v.Errorf("settle: %v, %v", errs, err)
		}
	})
	more := v.receive(engine.Receive{Queue: testQueue, Max: 10, Wait: 60 * v.unit, Lease: v.lease()})
	wait()
	v.want(more, "b")
	v.exactly("a wait for a free place", time.Since(start), v.unit)
}

func limitReadBack(v *env) {
	l := able[engine.Limiter](v)
	want := engine.QueueLimits{
		Paused: true, Active: 3, KeyActive: 2,
		Rate:    engine.Rate{Count: 10, Per: time.Minute, Burst: 4},
		KeyRate: engine.Rate{Count: 7, Per: time.Hour, Burst: 2},
	}
	v.limit(want)
	if got, err := l.QueueLimits(v.ctx, testQueue); err != nil || got != want {
		v.failf("limits read back are %+v, %v; want %+v", got, err, want)
	}
	if got, err := l.QueueLimits(v.ctx, "other"); err != nil || got != (engine.QueueLimits{}) {
		v.failf("limits of an unknown queue are %+v, %v", got, err)
	}
	v.limit(engine.QueueLimits{})
	if got, err := l.QueueLimits(v.ctx, testQueue); err != nil || got != (engine.QueueLimits{}) {
		v.failf("lifted limits are %+v, %v", got, err)
	}
}

func limitInvalid(v *env) {
	l := able[engine.Limiter](v)
	for _, bad := range []engine.QueueLimits{
		{Active: -1}, {KeyActive: -1}, {Rate: engine.Rate{Count: -1}},
		{Rate: engine.Rate{Count: 1, Per: -time.Second}}, {KeyRate: engine.Rate{Count: 1, Burst: -1}},
	} {
		if err := l.SetLimits(v.ctx, testQueue, bad); forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("limits %+v gave %v, want code invalid", bad, err)
		}
	}
	if err := l.SetLimits(v.ctx, "", engine.QueueLimits{}); forebay.CodeOf(err) != forebay.CodeInvalid {
		v.failf("limits of no queue gave %v, want code invalid", err)
	}
}

func limitConcurrently(v *env) {
	const total, most, mostKey = 200, 5, 2
	v.limit(engine.QueueLimits{Active: most, KeyActive: mostKey})
	for i, id := range ids("m", total) {
		v.send(msg(id, withLimit(fmt.Sprint("k", i%4))))
	}
	var mu sync.Mutex
	var done atomic.Int64
	active := make(map[string]int)
	note := func(ds []forebay.Delivery, by int) error {
		mu.Lock()
		defer mu.Unlock()
		for _, d := range ds {
			active[""] += by
			active[d.LimitKey] += by
			if active[""] > most || active[d.LimitKey] > mostKey {
				return fmt.Errorf("active %v, want at most %d and %d of a key", active, most, mostKey)
			}
		}
		return nil
	}
	v.each(8, func(i int) error {
		for {
			ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 1 + i%3, Wait: v.unit, Lease: v.lease()})
			if err != nil {
				return err
			}
			if err := note(ds, 1); err != nil {
				return err
			}
			if _, err := v.e.Extend(v.ctx, receiptsOf(ds), v.lease()); err != nil {
				return err
			}
			if err := note(ds, -1); err != nil { // before the settle, so never too high
				return err
			}
			done.Add(int64(len(ds)))
			if _, err := v.e.Settle(v.ctx, acks(ds)); err != nil {
				return err
			}
			if len(ds) == 0 {
				return nil
			}
		}
	})
	if n := done.Load(); n != total {
		v.failf("%d of %d came", n, total)
	}
}

func limitQueues(v *env) {
	v.limit(engine.QueueLimits{Active: 1})
	v.put("a", "b")
	v.send(msg("c", inQueue("r")), msg("d", inQueue("r")))
	v.want(v.takeAll("r"), "c", "d")
	v.one("a")
}
