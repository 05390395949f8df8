package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func receiveCases() []testCase {
	return []testCase{
		{name: "receive/oldest first, at most max", invariants: []int{6}, run: receiveMax},
		{name: "receive/unknown queue", run: receiveUnknown},
		{name: "receive/bounds of the call", invariants: []int{8}, run: receiveBounds},
		{name: "receive/the wait runs out", invariants: []int{11}, run: receiveWaitRunsOut},
		{name: "receive/a send wakes it", invariants: []int{11}, run: receiveWoken},
		{name: "receive/what becomes due wakes it", invariants: []int{4, 11}, run: receiveDue},
		{name: "receive/many wait, each message wakes one", invariants: []int{11}, run: receiveManyWait},
		{name: "receive/the context ends", invariants: []int{4}, run: receiveContextEnds},
		{name: "receive/side by side, no message twice", invariants: []int{3, 4}, run: receiveConcurrently},
		{name: "receive/default lease", invariants: []int{4}, run: receiveDefaultLease},
		{name: "receive/not before its time", run: receiveNotBefore},
	}
}

func receiveMax(v *env) {
	v.put(ids("m", 10)...)
	first := v.take(4)
	v.want(first, "m1", "m2", "m3", "m4")
	rest := v.take(10)
	v.want(rest, "m5", "m6", "m7", "m8", "m9", "m10")
	v.none()
	seen := make(map[forebay.Receipt]bool)
	for _, d := range append(first, rest...) {
		if d.Receipt == "" || seen[d.Receipt] {
			v.failf("%q has receipt %q, empty or another's", d.ID, d.Receipt)
		}
		seen[d.Receipt] = true
		if d.Attempt != 1 || d.Deliveries != 1 || len(d.Failures) != 0 {
			v.failf("first delivery %+v, want attempt 1, delivery 1, no failures", d)
		}
	}
}

func receiveUnknown(v *env) {
	v.put("a")
	if ds := v.receive(engine.Receive{Queue: "nobody", Max: 1}); len(ds) != 0 {
		v.failf("an unknown queue gave %v", idsOf(ds))
	}
	v.one("a")
}

func receiveBounds(v *env) {
	v.put("a")
	bad := map[string]engine.Receive{
		"no queue":    {Max: 1},
		"max 0":       {Queue: testQueue},
		"max below 0": {Queue: testQueue, Max: -1},
		"large max":   {Queue: testQueue, Max: engine.MaxReceive + 1},
		"long wait":   {Queue: testQueue, Max: 1, Wait: engine.MaxWait + time.Second},
		"short lease": {Queue: testQueue, Max: 1, Lease: engine.MinLease - 1},
		"long lease":  {Queue: testQueue, Max: 1, Lease: engine.MaxLease + time.Second},
		"below 0":     {Queue: testQueue, Max: 1, Lease: -time.Second},
	}
	for what, r := range bad {
		if ds, err := v.e.Receive(v.ctx, r); forebay.CodeOf(err) != forebay.CodeInvalid || len(ds) != 0 {
			v.failf("%s: receive gave %v, %v; want code invalid", what, idsOf(ds), err)
		}
	}
	v.one("a")
}

func receiveWaitRunsOut(v *env) {
	start := time.Now()
	ds := v.receive(engine.Receive{Queue: testQueue, Max: 1, Wait: 5 * v.unit})
	if len(ds) != 0 {
		v.failf("an empty queue gave %v", idsOf(ds))
	}
	v.exactly("an empty wait", time.Since(start), 5*v.unit)
}

// exactly wants a duration of fake time, to the millisecond that stores keep.
// Real time is never asserted.
func (v *env) exactly(what string, got, want time.Duration) {
	v.Helper()
	if v.h.Pass == nil && (got-want).Abs() > time.Millisecond {
		v.failf("%s took %v, want %v", what, got, want)
	}
}

// afterAWhile runs f when the others have settled down, and waits for it in the
// end through the returned function.
func (v *env) afterAWhile(f func()) (wait func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		v.pass(v.unit)
		f()
	})
	return wg.Wait
}

func receiveWoken(v *env) {
	for round := range 5 {
		id := fmt.Sprint("m", round)
		start := time.Now()
		wait := v.afterAWhile(func() {
			if _, err := v.e.Send(v.ctx, []forebay.Message{msg(id)}); err != nil {
				v.Errorf("send: %v", err)
			}
		})
		ds := v.receive(engine.Receive{Queue: testQueue, Max: 10, Wait: 60 * v.unit})
		wait()
		v.want(ds, id)
		// Not a moment later: woken by the send, not by a tick.
		v.exactly("a send to a waiting receiver", time.Since(start), v.unit)
		v.ack(ds...)
	}
}

func receiveDue(v *env) {
	v.send(msg("later", notBefore(time.Now().Add(3*v.unit))))
	start := time.Now()
	ds := v.receive(engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit, Lease: 5 * v.unit})
	v.want(ds, "later")
	v.exactly("a wait for the due message", time.Since(start), 3*v.unit)

	start = time.Now() // nobody settles: the lease runs out
	ds = v.receive(engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit, Lease: v.lease()})
	v.want(ds, "later")
	v.exactly("a wait for the lease's end", time.Since(start), 5*v.unit)

	v.end(ds[0], forebay.Retry, 7*v.unit)
	start = time.Now()
	ds = v.receive(engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit, Lease: v.lease()})
	v.want(ds, "later")
	v.exactly("a wait for the retry", time.Since(start), 7*v.unit)

	start = time.Now()
	wait := v.afterAWhile(func() {
		s := forebay.Settlement{Receipt: ds[0].Receipt, Verdict: forebay.Release}
		if errs, err := v.e.Settle(v.ctx, []forebay.Settlement{s}); err != nil || errs[0] != nil {
			v.Errorf("release: %v, %v", errs, err)
		}
	})
	again := v.receive(engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit, Lease: v.lease()})
	wait()
	v.want(again, "later")
	v.exactly("a wait for the release", time.Since(start), v.unit)
}

func receiveManyWait(v *env) {
	const receivers = 20
	start := time.Now()
	wait := v.afterAWhile(func() {
		for _, id := range ids("m", receivers) {
			if _, err := v.e.Send(v.ctx, []forebay.Message{msg(id)}); err != nil {
				v.Errorf("send: %v", err)
			}
		}
	})
	var mu sync.Mutex
	var got []forebay.Delivery
	v.each(receivers, func(int) error {
		ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit, Lease: v.lease()})
		mu.Lock()
		defer mu.Unlock()
		got = append(got, ds...)
		return err
	})
	wait()
	v.wantSet(got, ids("m", receivers)...)
	v.exactly("waking all receivers", time.Since(start), v.unit)
}

func receiveContextEnds(v *env) {
	ended, cancel := context.WithCancel(v.ctx)
	cancel()
	v.put("a")
	if ds, err := v.e.Receive(ended, engine.Receive{Queue: testQueue, Max: 1}); !errors.Is(err, context.Canceled) || len(ds) != 0 {
		v.failf("receive with an ended context gave %v, %v; want its error", idsOf(ds), err)
	}
	v.ack(v.one("a")) // it stayed free

	ctx, cancel := context.WithTimeout(v.ctx, 3*v.unit)
	defer cancel()
	start := time.Now()
	_, err := v.e.Receive(ctx, engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit})
	if !errors.Is(err, context.DeadlineExceeded) {
		v.failf("receive past its deadline gave %v, want the context's error", err)
	}
	v.exactly("waking at the context's end", time.Since(start), 3*v.unit)
	v.put("b")
	v.one("b") // not leased to the receiver that had left
}

func receiveConcurrently(v *env) {
	const total, receivers = 600, 12
	v.put(ids("m", total)...)
	var mu sync.Mutex
	got := make(map[string]int)
	v.each(receivers, func(i int) error {
		for {
			ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 1 + i, Lease: v.lease()})
			if err != nil || len(ds) == 0 {
				return err
			}
			mu.Lock()
			for _, d := range ds {
				got[d.ID]++
			}
			mu.Unlock()
			if _, err := v.e.Settle(v.ctx, acks(ds)); err != nil {
				return err
			}
		}
	})
	for id, n := range got {
		if n != 1 {
			v.failf("%q was handed out %d times", id, n)
		}
	}
	if len(got) != total {
		v.failf("%d of %d messages came", len(got), total)
	}
	v.counts(testQueue, 0, 0, 0, 0)
}

func receiveDefaultLease(v *env) {
	if v.h.Pass != nil {
		return // 30 s of real time show nothing that the lease cases do not
	}
	v.put("a")
	start := time.Now()
	d := v.receive(engine.Receive{Queue: testQueue, Max: 1})[0]
	v.exactly("the default lease", d.LeaseUntil.Sub(start), forebay.DefaultLease)
	v.pass(forebay.DefaultLease - time.Second)
	v.none()
	v.pass(2 * time.Second)
	v.one("a")
}

func receiveNotBefore(v *env) {
	now := time.Now()
	v.send(msg("late", notBefore(now.Add(10*v.unit))), msg("now"), msg("past", notBefore(now.Add(-time.Hour))))
	v.counts(testQueue, 2, 0, 1, 0)
	v.wantSet(v.take(10), "now", "past")
	v.pass(8 * v.unit)
	v.none()
	v.pass(3 * v.unit)
	v.counts(testQueue, 1, 2, 0, 0)
	v.one("late")
}
