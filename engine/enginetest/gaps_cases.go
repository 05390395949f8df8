package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// gapJoining: the same id twice is two messages, and no caller is told otherwise.
func gapJoining(v *env) {
	v.untold(msg("a"), msg("a"))
	ds := v.takeAll(testQueue)
	v.want(ds, "a", "a")
	v.ack(ds...)
	v.untold(msg("a"))
	v.one("a")
}

// untold wants messages taken, and none told to be a duplicate.
func (v *env) untold(msgs ...forebay.Message) {
	v.Helper()
	for i, r := range v.send(msgs...) {
		if r.Duplicate || r.Conflict || r.ID != msgs[i].ID {
			v.failf("send of %q gave %+v; the harness says that duplicates are not told", msgs[i].ID, r)
		}
	}
}

// gapTelling: within the window that the store has (five minutes) the same id is one
// message; nobody is told, and afterwards it is another one.
func gapTelling(v *env) {
	v.untold(msg("a", withBody("one")), msg("b"), msg("a", withBody("two")))
	ds := v.takeAll(testQueue)
	v.wantSet(ds, "a", "b")
	v.ack(ds...)
	v.untold(msg("a"))
	v.none()
	v.pass(5*time.Minute + time.Second)
	v.untold(msg("a"))
	v.ack(v.one("a"))
	if v.h.Cannot[DedupKeys] == "" {
		v.untold(msg("k1", withKey("k")), msg("k2", withKey("k")))
		v.ack(v.one("k1"))
	}
	v.soakOnce()
}

// soakOnce sends all twice from many sides, and wants each once.
func (v *env) soakOnce() {
	v.Helper()
	const senders, each = 6, 20
	v.each(senders, func(i int) error {
		for n := range each {
			m := msg(fmt.Sprintf("%d-%d", i/2, n), inGroup(fmt.Sprint("g", n%3)))
			if _, err := v.e.Send(v.ctx, []forebay.Message{m}); err != nil {
				return err
			}
		}
		return nil
	})
	got := make(map[string]bool)
	for {
		ds := v.takeAll(testQueue)
		if len(ds) == 0 {
			break
		}
		for _, d := range ds {
			if got[d.ID] {
				v.failf("%q came twice", d.ID)
			}
			got[d.ID] = true
		}
		v.ack(ds...)
	}
	if len(got) != senders/2*each {
		v.failf("%d of %d messages came", len(got), senders/2*each)
	}
}

// gapGrouping: a group comes along with its message, and others of it are handed out
// beside it.
func gapGrouping(v *env) {
	v.putGroup("g", "g1", "g2")
	first := v.take(1)
	if len(first) != 1 || first[0].Group != "g" {
		v.failf("received %+v, want one of group g", first)
	}
	v.end(first[0], forebay.Retry, v.unit)
	second := v.take(1)
	if len(second) != 1 || second[0].Group != "g" || second[0].ID == first[0].ID {
		v.failf("received %+v, want the other of group g", second)
	}
	v.ack(second...)
}

// gapCounting: every hand-out is an attempt, whatever became of it.
func gapCounting(v *env) {
	v.put("a")
	for n := 1; n <= 4; n++ {
		d := v.short(1)[0]
		if d.ID != "a" || d.Attempt != n || d.Deliveries != n {
			v.failf("hand-out %d is attempt %d, delivery %d", n, d.Attempt, d.Deliveries)
		}
		switch n {
		case 1:
			v.end(d, forebay.Release, 0)
		case 2:
			v.end(d, forebay.Retry, 0)
		case 3:
			v.pass(4 * v.unit)
			v.codes(v.settle(acks([]forebay.Delivery{d})...), forebay.CodeLeaseLost)
		default:
			v.end(d, forebay.Release, 5*v.unit)
		}
	}
	v.counts(testQueue, 0, 0, 1, 0)
	v.pass(4 * v.unit)
	v.none()
	v.pass(2 * v.unit)
	v.ack(v.one("a"))
}

// gapRecalling: a retry comes again, without a word on why.
func gapRecalling(v *env) {
	v.put("a")
	s := forebay.Settlement{Receipt: v.one("a").Receipt, Verdict: forebay.Retry, Cause: cause("x")}
	v.codes(v.settle(s), "")
	if d := v.one("a"); len(d.Failures) != 0 || d.Deliveries != 2 {
		v.failf("after a failure came %+v; the harness says that causes are not kept", d)
	}
}

// gapLeaving: a Receive that is to end takes a moment, no more than a second, and
// leaves nothing leased behind.
func gapLeaving(v *env) {
	ended, stop := context.WithCancel(v.ctx)
	stop()
	v.put("a")
	if ds, err := v.e.Receive(ended, engine.Receive{Queue: testQueue, Max: 1}); !errors.Is(err, context.Canceled) || len(ds) != 0 {
		v.failf("receive with an ended context gave %v, %v; want its error", idsOf(ds), err)
	}
	v.ack(v.one("a"))

	begin := time.Now()
	v.leave(nil)
	v.atMost("leaving at the context's end", time.Since(begin)-3*v.unit, time.Second)
	v.leave(func() { v.put("b") })
	v.ack(v.one("b")) // what came into the last moment did not stay leased

	begin = time.Now()
	wait := v.afterAWhile(func() { _ = v.e.Close() })
	v.each(10, func(int) error {
		ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit})
		if forebay.CodeOf(err) != forebay.CodeClosed || len(ds) != 0 {
			return fmt.Errorf("a waiting receive gave %v, %v; want code closed", idsOf(ds), err)
		}
		return nil
	})
	v.atMost("waking by close", time.Since(begin)-v.unit, time.Second)
	wait()
}

// leave has a Receive whose context ends after three units, and something happen a
// little later.
func (v *env) leave(then func()) {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, 3*v.unit)
	defer cancel()
	wait := v.afterAWhile(func() {
		v.pass(2*v.unit + v.unit/20)
		if then != nil {
			then()
		}
	})
	if ds, err := v.e.Receive(ctx, engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit}); !errors.Is(err, context.DeadlineExceeded) || len(ds) != 0 {
		v.failf("receive past its deadline gave %v, %v; want the context's error", idsOf(ds), err)
	}
	wait()
}

// atMost wants fake time to have passed, within a bound: none would be no gap.
func (v *env) atMost(what string, got, most time.Duration) {
	v.Helper()
	if v.h.Pass == nil && (got <= time.Millisecond || got > most) {
		v.failf("%s took %v; the harness says that it takes a moment, of %v at most", what, got, most)
	}
}

// gapFilling: bytes that are no text fit less. What does not fit is refused by itself.
func gapFilling(v *env) {
	full := make([]byte, forebay.MaxPayloadBytes)
	res, err := v.e.Send(v.ctx, []forebay.Message{msg("a"), msg("full", withBody(string(full))), msg("b")})
	if err != nil || res[0].Err != nil || res[2].Err != nil || forebay.CodeOf(res[1].Err) != forebay.CodeTooLarge {
		v.failf("send gave %+v, %v; want the second refused as too large", res, err)
	}
	v.ack(v.takeAll(testQueue)...)
	v.round(msg("half", withBody(string(full[:forebay.MaxPayloadBytes/2]))))
	v.round(msg("text", withBody(string(bytes.Repeat([]byte("x"), forebay.MaxPayloadBytes-2000)))))
}

// gapSorting: all of a large batch come, whole, in some order.
func gapSorting(v *env) {
	const total = 500
	msgs, sent := make([]forebay.Message, total), make(map[string]forebay.Message)
	for i := range msgs {
		msgs[i] = msg(fmt.Sprint("m", i), withBody(string(bytes.Repeat([]byte{byte(i)}, i*i%3001))))
		sent[msgs[i].ID] = msgs[i]
	}
	v.send(msgs...)
	first := v.short(100)
	v.ack(first[:len(first)/2]...)
	v.counts(testQueue, int64(total-len(first)), int64(len(first)-len(first)/2), 0, 0)
	v.pass(4 * v.unit)
	for _, d := range first[:len(first)/2] {
		delete(sent, d.ID)
	}
	sorted := true
	last := -1
	for _, d := range v.takeAll(testQueue) {
		m, ok := sent[d.ID]
		if !ok {
			v.failf("%q came again", d.ID)
		}
		v.same(d.Message, m)
		delete(sent, d.ID)
		var n int
		_, _ = fmt.Sscanf(d.ID, "m%d", &n)
		sorted = sorted && n > last
		last = n
	}
	if len(sent) > 0 {
		v.failf("%d messages did not come", len(sent))
	}
	if sorted {
		v.failf("all came in order of age; the harness says that they do not")
	}
}

// gapDating: nothing is told of the oldest, rather than something wrong.
func gapDating(v *env) {
	v.put("a")
	if s := v.stats(testQueue); !s.Oldest.IsZero() || s.Waiting != 1 {
		v.failf("stats %+v; the harness says that the oldest's age is not known", s)
	}
}

// gapSparing: a purge drops what is active too.
func gapSparing(v *env) {
	v.put("active", "a", "b")
	v.send(msg("other", inQueue("r")))
	v.pass(v.unit)
	d := v.short(1)[0]
	if n := v.purge(testQueue); n < 2 {
		v.failf("purge dropped %d, want 2 or 3", n)
	}
	v.none()
	v.pass(4 * v.unit)
	v.none() // not even the active one, though its lease ended
	v.codes(v.settle(acks([]forebay.Delivery{d})...), forebay.CodeLeaseLost)
	v.put("new")
	v.ack(v.one("new"))
	v.want(v.takeAll("r"), "other")
	if n := v.purge("nobody"); n != 0 {
		v.failf("purge of an unknown queue dropped %d", n)
	}
}

// gapDelaying: a message that is to wait is refused; one whose time has come is not.
func gapDelaying(v *env) {
	v.refusesItem(msg("late", notBefore(time.Now().Add(5*v.unit))))
	v.send(msg("past", notBefore(time.Now().Add(-time.Hour))))
	v.end(v.one("past"), forebay.Retry, 5*v.unit) // a retry may wait all the same
	v.pass(4 * v.unit)
	v.none()
	v.pass(2 * v.unit)
	v.ack(v.one("past"))
}
