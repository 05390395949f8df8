package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func wakeCases() []testCase {
	return []testCase{
		{name: "wake/none is lost among many", invariants: []int{6, 11}, run: func(v *env) { v.wakeAll(nil) }},
		{name: "wake/none is lost under limits", invariants: []int{7, 11}, needs: Limiting, run: func(v *env) {
			v.limit(engine.QueueLimits{Active: 4, KeyActive: 1})
			v.wakeAll([]func(*forebay.Message){withLimit("k")})
		}},
		{name: "wake/who does not wait is answered beside those who do", invariants: []int{11}, run: shortBesideLong},
		{name: "batch/the largest", invariants: []int{8, 10}, run: largestBatch},
	}
}

// wakeAll has receivers that wait long and settle at once, and senders that pause.
// In a bubble no time passes while anybody can go on, so a message that comes later
// than it was sent shows a lost wake-up. Half of the messages have a group: they are
// woken by the settle of the one before.
func (v *env) wakeAll(changes []func(*forebay.Message)) {
	const senders, receivers, each = 4, 8, 40
	var done atomic.Int64
	v.each(senders+receivers, func(i int) error {
		rng := rand.New(rand.NewPCG(11, uint64(i)))
		if i < senders {
			for n := range each {
				m := msg(fmt.Sprintf("%d-%d", i, n), changes...)
				if rng.IntN(2) == 0 {
					m.Group = fmt.Sprint("g", rng.IntN(3))
				}
				if _, err := v.e.Send(v.ctx, []forebay.Message{m}); err != nil {
					return err
				}
				if rng.IntN(3) == 0 {
					v.pass(v.unit / 4)
				}
			}
			return nil
		}
		for done.Load() < senders*each {
			ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 1 + i%3, Wait: 20 * v.unit, Lease: v.lease()})
			if err != nil {
				return err
			}
			for _, d := range ds {
				if late := time.Since(d.SentAt); v.h.Pass == nil && late > time.Millisecond {
					return fmt.Errorf("%q came %v after it was sent, though receivers waited", d.ID, late)
				}
			}
			if _, err := v.e.Settle(v.ctx, acks(ds)); err != nil {
				return err
			}
			done.Add(int64(len(ds)))
		}
		return nil
	})
	v.counts(testQueue, 0, 0, 0, 0)
}

// largestBatch moves as many messages as one call may.
func largestBatch(v *env) {
	msgs := make([]forebay.Message, engine.MaxSend)
	for i := range msgs {
		msgs[i] = msg(fmt.Sprint("m", i))
	}
	v.send(msgs...)
	for i, r := range v.send(msgs...) {
		v.duplicate(r, msgs[i].ID, false)
	}
	ended := 0
	for ended < len(msgs) {
		ds := v.receive(engine.Receive{Queue: testQueue, Max: engine.MaxReceive, Lease: v.lease()})
		if len(ds) == 0 {
			v.failf("%d of %d came", ended, len(msgs))
		}
		v.codes(v.extend(v.lease(), receiptsOf(ds)...), make([]forebay.Code, len(ds))...)
		v.ack(ds...)
		ended += len(ds)
	}
	v.counts(testQueue, 0, 0, 0, 0)
}

// shortBesideLong receives without a wait while others wait for the same queue.
func shortBesideLong(v *env) {
	const long = 3
	var done atomic.Int64
	v.each(long+1, func(i int) error {
		if i < long {
			ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 1, Wait: 20 * v.unit, Lease: v.lease()})
			done.Add(int64(len(ds)))
			return err
		}
		v.pass(v.unit)
		for range 2 {
			ctx, cancel := context.WithTimeout(v.ctx, 5*v.unit)
			ds, err := v.e.Receive(ctx, engine.Receive{Queue: testQueue, Max: 10, Lease: v.lease()})
			cancel()
			if err != nil || len(ds) > 0 {
				return fmt.Errorf("a receive without a wait gave %d messages, %v", len(ds), err)
			}
		}
		for n := range long {
			if _, err := v.e.Send(v.ctx, []forebay.Message{msg(fmt.Sprint("m", n))}); err != nil {
				return err
			}
		}
		return nil
	})
	if n := done.Load(); n != long {
		v.failf("%d of %d that waited got a message", n, long)
	}
}
