package enginetest

import (
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func replayCases() []testCase {
	return []testCase{
		{name: "replay/sends again, reset", invariants: []int{12}, needs: DeadLetters, run: replayReset},
		{name: "replay/in the order of dying", invariants: []int{6}, needs: DeadLetters, run: replayOrder},
		{name: "replay/answers per item", invariants: []int{8}, needs: DeadLetters, run: replayMixed},
		{name: "replay/may die again", invariants: []int{12}, needs: DeadLetters, run: replayAgain},
		{name: "replay/wakes a receiver", invariants: []int{11}, needs: DeadLetters, run: replayWakes},
		{name: "replay/one caller wins", invariants: []int{4}, needs: DeadLetters, run: replayConcurrently},
		{name: "replay/still known as a duplicate", invariants: []int{2}, needs: DeadLetters, run: replayDedup},
	}
}

func (v *env) replay(seqs ...int64) []error {
	v.Helper()
	errs, err := able[engine.DeadLetters](v).Replay(v.ctx, seqs)
	if err != nil {
		v.failf("replay: %v", err)
	}
	if len(errs) != len(seqs) {
		v.failf("replay of %d gave %d answers", len(seqs), len(errs))
	}
	return errs
}

func replayReset(v *env) {
	m := msg("a", inQueue("r"), inGroup("g"), notBefore(time.Now().Add(v.unit)))
	m.Headers = map[string]string{"h": "v"}
	v.send(m)
	v.pass(2 * v.unit)
	for range 3 {
		d := v.receive(engine.Receive{Queue: "r", Max: 1, Lease: v.lease()})[0]
		v.end(d, forebay.Retry, 0)
	}
	v.end(v.receive(engine.Receive{Queue: "r", Max: 1, Lease: v.lease()})[0], forebay.Dead, 0)
	v.codes(v.replay(v.wantDead(engine.DeadQuery{}, "a")[0].Seq), "")
	v.wantDead(engine.DeadQuery{})
	v.counts("r", 1, 0, 0, 0)
	d := v.receive(engine.Receive{Queue: "r", Max: 1, Lease: v.lease()})[0]
	m.NotBefore, d.NotBefore = time.Time{}, time.Time{} // it is past; kept or not
	v.same(d.Message, m)
	if d.Attempt != 1 || d.Deliveries != 1 {
		v.failf("replayed as attempt %d, delivery %d; want 1 and 1", d.Attempt, d.Deliveries)
	}
	v.ack(d)
}

func replayOrder(v *env) {
	for _, id := range ids("m", 5) {
		v.kill(msg(id, inGroup("g")), "x")
		v.pass(v.unit)
	}
	l := v.wantDead(engine.DeadQuery{}, "m5", "m4", "m3", "m2", "m1")
	v.putGroup("g", "m6")
	v.codes(v.replay(l[0].Seq, l[3].Seq, l[2].Seq, l[4].Seq, l[1].Seq), "", "", "", "", "")
	var got []forebay.Delivery
	for range 6 {
		ds := v.take(1)
		v.ack(ds...)
		if ds[0].ID != "m6" { // sent before the replay, but either order is fair
			got = append(got, ds...)
		}
	}
	v.want(got, ids("m", 5)...)
}

func replayMixed(v *env) {
	v.kill(msg("a"), "x")
	v.kill(msg("b"), "x")
	l := v.dead(engine.DeadQuery{})
	v.codes(v.replay(l[1].Seq, -1, 0, l[1].Seq), "", forebay.CodeNotFound, forebay.CodeNotFound, forebay.CodeNotFound)
	v.wantDead(engine.DeadQuery{}, "b")
	v.want(v.take(10), "a")
	if errs := v.replay(); len(errs) != 0 {
		v.failf("replay of nothing gave %v", errs)
	}
}

func replayAgain(v *env) {
	v.kill(msg("a"), "x")
	first := v.dead(engine.DeadQuery{})[0]
	v.codes(v.replay(first.Seq), "")
	s := forebay.Settlement{Receipt: v.one("a").Receipt, Verdict: forebay.Dead, Cause: cause("y")}
	v.codes(v.settle(s), "")
	second := v.wantDead(engine.DeadQuery{}, "a")[0]
	v.sameCause(second.Cause, cause("y"))
	if second.Seq <= first.Seq || second.Deliveries != 1 {
		v.failf("died again as %+v after number %d; want a new number and 1 delivery", second, first.Seq)
	}
	v.codes(v.replay(first.Seq), forebay.CodeNotFound)
	v.none()
}

func replayWakes(v *env) {
	v.kill(msg("a"), "x")
	seq := v.dead(engine.DeadQuery{})[0].Seq
	begin := time.Now()
	wait := v.afterAWhile(func() { v.replay(seq) })
	ds := v.receive(engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit, Lease: v.lease()})
	wait()
	v.want(ds, "a")
	v.exactly("a wait for the replay", time.Since(begin), v.unit)
}

func replayConcurrently(v *env) {
	v.kill(msg("a"), "x")
	dl, seq := able[engine.DeadLetters](v), v.dead(engine.DeadQuery{})[0].Seq
	done := make(chan int, 16)
	v.each(16, func(i int) error {
		act := dl.Replay
		if i%4 == 0 {
			act = dl.Discard
		}
		errs, err := act(v.ctx, []int64{seq})
		if err == nil && errs[0] == nil {
			done <- i
		}
		return err
	})
	if len(done) != 1 {
		v.failf("%d callers took one dead letter", len(done))
	}
	want := 1
	if <-done%4 == 0 {
		want = 0
	}
	if ds := v.takeAll(testQueue); len(ds) != want {
		v.failf("received %v, want %d", idsOf(ds), want)
	}
}

func replayDedup(v *env) {
	m := msg("a", withWindow(v.unit))
	v.kill(m, "x")
	v.codes(v.replay(v.dead(engine.DeadQuery{})[0].Seq), "")
	v.pass(10 * v.unit)
	v.duplicate(v.send(m)[0], "a", false) // it is there
	v.ack(v.one("a"))
	v.none()
}
