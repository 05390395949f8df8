package enginetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func deadCases() []testCase {
	return []testCase{
		{name: "dead/kept with its cause", invariants: []int{12}, needs: DeadLetters, run: deadKept},
		{name: "dead/newest first, by pages", needs: DeadLetters, run: deadPages},
		{name: "dead/filters", needs: DeadLetters, run: deadFilters},
		{name: "dead/bounds of the query", invariants: []int{8}, needs: DeadLetters, run: deadBounds},
		{name: "dead/stays", invariants: []int{12}, needs: DeadLetters, run: deadStays},
		{name: "dead/discarded for good", invariants: []int{8, 12}, needs: DeadLetters, run: deadDiscard},
		{name: "dead/is a duplicate's first", invariants: []int{2}, needs: DeadLetters, run: deadDedup},
	}
}

// kill sends a message and lets it die.
func (v *env) kill(m forebay.Message, code string) {
	v.Helper()
	v.send(m)
	ds := v.receive(engine.Receive{Queue: m.Queue, Max: 1, Lease: v.lease()})
	v.want(ds, m.ID)
	v.codes(v.settle(forebay.Settlement{Receipt: ds[0].Receipt, Verdict: forebay.Dead, Cause: cause(code)}), "")
}

func (v *env) dead(q engine.DeadQuery) []forebay.DeadLetter {
	v.Helper()
	letters, err := able[engine.DeadLetters](v).Dead(v.ctx, q)
	if err != nil {
		v.failf("list dead letters %+v: %v", q, err)
	}
	return letters
}

func (v *env) wantDead(q engine.DeadQuery, ids ...string) []forebay.DeadLetter {
	v.Helper()
	letters := v.dead(q)
	got := make([]string, len(letters))
	for i, l := range letters {
		got[i] = l.Message.ID
	}
	if !slices.Equal(got, ids) {
		v.failf("dead letters for %+v are %v, want %v", q, got, ids)
	}
	return letters
}

func deadKept(v *env) {
	m := msg("a", inGroup("g"), withLimit("l"), withBody("body \x00\xff"))
	m.Headers = map[string]string{"h": "größe"}
	sent := time.Now()
	v.send(m)
	v.pass(v.unit)
	for n := range 2 {
		d := v.one("a")
		s := forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Retry, Cause: cause(fmt.Sprint("code", n))}
		v.codes(v.settle(s), "")
	}
	v.end(v.one("a"), forebay.Release, 0)
	died := time.Now()
	s := forebay.Settlement{Receipt: v.one("a").Receipt, Verdict: forebay.Dead, Cause: cause("last")}
	v.codes(v.settle(s), "")

	l := v.wantDead(engine.DeadQuery{}, "a")[0]
	v.same(l.Message, m)
	v.sameCause(l.Cause, cause("last"))
	if l.Seq <= 0 || l.Deliveries != 3 || len(l.Failures) != 2 {
		v.failf("dead letter %+v, want a number, 3 deliveries and 2 failures", l)
	}
	for n, f := range l.Failures {
		v.sameCause(f, cause(fmt.Sprint("code", n)))
	}
	// Two failed before; whether the fatal one counts is the engine's to say.
	if l.Attempts != 2 && l.Attempts != 3 {
		v.failf("dead letter counts %d attempts, want 2 or 3", l.Attempts)
	}
	v.exactly("sent at", l.SentAt.Sub(sent), 0)
	v.exactly("died at", l.DiedAt.Sub(died), 0)
}

func deadPages(v *env) {
	const total = 25
	for _, id := range ids("m", total) {
		v.kill(msg(id), "x")
	}
	var got []string
	before := int64(0)
	for {
		letters := v.dead(engine.DeadQuery{Limit: 10, Before: before})
		if len(letters) == 0 {
			break
		}
		for _, l := range letters {
			if before != 0 && l.Seq >= before {
				v.failf("dead letter %d is listed after %d", l.Seq, before)
			}
			before = l.Seq
			got = append(got, l.Message.ID)
		}
	}
	want := ids("m", total)
	slices.Reverse(want)
	if !slices.Equal(got, want) {
		v.failf("pages gave %v, want %v", got, want)
	}
}

func deadFilters(v *env) {
	v.kill(msg("a"), "x")
	v.kill(msg("b"), "y")
	v.kill(msg("c", inQueue("r")), "x")
	v.kill(msg("d", inQueue("r")), "y")
	v.wantDead(engine.DeadQuery{}, "d", "c", "b", "a")
	v.wantDead(engine.DeadQuery{Limit: 1000}, "d", "c", "b", "a")
	v.wantDead(engine.DeadQuery{Queue: testQueue}, "b", "a")
	v.wantDead(engine.DeadQuery{Code: "x"}, "c", "a")
	v.wantDead(engine.DeadQuery{Queue: "r", Code: "x"}, "c")
	v.wantDead(engine.DeadQuery{ID: "d"}, "d")
	v.wantDead(engine.DeadQuery{ID: "d", Queue: testQueue})
	v.wantDead(engine.DeadQuery{Queue: "nobody"})
	v.wantDead(engine.DeadQuery{Code: "x", Limit: 1}, "c")
}

func deadBounds(v *env) {
	for _, limit := range []int{-1, 1001} {
		_, err := able[engine.DeadLetters](v).Dead(v.ctx, engine.DeadQuery{Limit: limit})
		if forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("a limit of %d gave %v, want code invalid", limit, err)
		}
	}
	const total = 120
	v.put(ids("m", total)...)
	ss := acks(v.take(total))
	for i := range ss {
		ss[i].Verdict, ss[i].Cause = forebay.Dead, cause("x")
	}
	v.settle(ss...)
	if n := len(v.dead(engine.DeadQuery{})); n != 100 {
		v.failf("the default limit gave %d of %d, want 100", n, total)
	}
	v.counts(testQueue, 0, 0, 0, total)
}

func deadStays(v *env) {
	v.kill(msg("a", withWindow(v.unit)), "x")
	v.pass(1000 * v.unit)
	v.none()
	v.wantDead(engine.DeadQuery{}, "a")
	v.counts(testQueue, 0, 0, 0, 1)
}

func deadDiscard(v *env) {
	dl := able[engine.DeadLetters](v)
	v.kill(msg("a"), "x")
	v.kill(msg("b"), "x")
	v.kill(msg("c"), "x")
	letters := v.dead(engine.DeadQuery{}) // c, b, a
	errs, err := dl.Discard(v.ctx, []int64{letters[0].Seq, 1 << 40, letters[2].Seq, letters[0].Seq})
	if err != nil {
		v.failf("discard: %v", err)
	}
	v.codes(errs, "", forebay.CodeNotFound, "", forebay.CodeNotFound)
	v.wantDead(engine.DeadQuery{}, "b")
	v.counts(testQueue, 0, 0, 0, 1)
	v.none()
	errs, err = dl.Replay(v.ctx, []int64{letters[0].Seq})
	if err != nil {
		v.failf("replay: %v", err)
	}
	v.codes(errs, forebay.CodeNotFound)
	v.none()
	v.kill(msg("d"), "x")
	if l := v.dead(engine.DeadQuery{ID: "d"}); l[0].Seq <= letters[0].Seq {
		v.failf("number %d was given again after %d", l[0].Seq, letters[0].Seq)
	}
}

func deadDedup(v *env) {
	m := msg("a", withWindow(5*v.unit))
	v.kill(m, "x")
	v.duplicate(v.send(m)[0], "a", false)
	v.pass(10 * v.unit)
	v.duplicate(v.send(m)[0], "a", false) // it is still there, and may be replayed
	v.none()
}
