package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func deadGroupCases() []testCase {
	return []testCase{
		{name: "deadgroup/by cause, counted", needs: DeadGrouping, run: deadGroups},
		{name: "deadgroup/pages in both orders", needs: DeadGrouping, run: deadGroupPages},
		{name: "deadgroup/oldest first", invariants: []int{6}, needs: DeadGrouping, run: deadSeqs},
		{name: "deadgroup/ends with a reason, or another in its place", invariants: []int{8, 9, 12}, needs: DeadGrouping, run: deadEnds},
		{name: "deadgroup/is in the history", needs: DeadGrouping, run: deadEndHistory},
		{name: "deadgroup/after a restart", invariants: []int{1}, needs: DeadGrouping, reopens: true, run: deadGroupsReopened},
		{name: "unbegun/a dead one charges nothing", invariants: []int{5}, needs: DeadLetters, run: deadUnbegun},
	}
}

// because lets a message die of a text.
func (v *env) killBy(m forebay.Message, code, text string) {
	v.Helper()
	v.send(m)
	ds := v.receive(engine.Receive{Queue: m.Queue, Max: 1, Lease: v.lease()})
	v.want(ds, m.ID)
	v.codes(v.settle(forebay.Settlement{Receipt: ds[0].Receipt, Verdict: forebay.Dead, Cause: forebay.Cause{Code: code, Message: text}}), "")
}

// groups lists all, as texts.
func (v *env) groups(q engine.DeadGroupQuery) (all []engine.DeadGroup, text string) {
	v.Helper()
	for {
		page, err := able[engine.DeadGroups](v).DeadGroups(v.ctx, q)
		if err != nil {
			v.failf("groups of %+v: %v", q, err)
		}
		all = append(all, page.Groups...)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	texts := make([]string, len(all))
	for i, g := range all {
		texts[i] = fmt.Sprintf("%s %s %s×%d", g.Queue, g.Code, g.Text, g.Count)
	}
	return all, strings.Join(texts, "; ")
}

func (v *env) wantGroups(q engine.DeadGroupQuery, want string) []engine.DeadGroup {
	v.Helper()
	all, got := v.groups(q)
	if got != want {
		v.failf("groups for %+v are %q, want %q", q, got, want)
	}
	return all
}

// threeCauses lets nine die: five, three and one of a cause.
func (v *env) threeCauses() {
	v.Helper()
	for i := range 5 {
		v.killBy(msg(fmt.Sprint("a", i)), "x", fmt.Sprintf("no user %d in 'shop %d'", i, i))
		v.pass(v.unit)
	}
	for i := range 3 {
		v.killBy(msg(fmt.Sprint("b", i)), "x", fmt.Sprintf("no order %d", i))
	}
	v.pass(v.unit)
	v.killBy(msg("c", inQueue("r")), "y", "no order 7")
}

func deadGroups(v *env) {
	v.wantGroups(engine.DeadGroupQuery{}, "")
	begun := time.Now()
	v.threeCauses()
	q := testQueue
	all := v.wantGroups(engine.DeadGroupQuery{}, "r y no order #×1; "+q+" x no order #×3; "+q+" x no user # in …×5")
	v.exactly("first", all[2].First.Sub(begun), 0)
	v.exactly("last", all[2].Last.Sub(begun), 4*v.unit)
	users := all[2].Fingerprint
	letters := v.dead(engine.DeadQuery{Group: users})
	if len(letters) != 5 || letters[0].Seq != all[2].Sample || letters[0].Fingerprint != users || letters[4].Message.ID != "a0" {
		v.failf("dead letters of a group are %+v, its sample is %d", letters, all[2].Sample)
	}
	v.wantGroups(engine.DeadGroupQuery{Queue: "r"}, "r y no order #×1")
	v.wantGroups(engine.DeadGroupQuery{Code: "y"}, "r y no order #×1")
	v.wantGroups(engine.DeadGroupQuery{Kind: "no such"}, "")
	v.wantGroups(engine.DeadGroupQuery{Queue: "nobody"}, "")
	v.wantGroups(engine.DeadGroupQuery{Fingerprint: users}, q+" x no user # in …×5")

	v.codes(v.replay(letters[4].Seq), "")
	errs, err := able[engine.DeadGroups](v).EndDead(v.ctx, []engine.DeadEnd{{Seq: letters[3].Seq}, {Seq: letters[2].Seq}})
	if err != nil {
		v.failf("end: %v", err)
	}
	v.codes(errs, "", "")
	v.wantGroups(engine.DeadGroupQuery{Fingerprint: users}, q+" x no user # in …×2")
	for _, l := range letters[:2] {
		v.codes(v.replay(l.Seq), "")
	}
	v.wantGroups(engine.DeadGroupQuery{Fingerprint: users}, "")
}

func deadGroupPages(v *env) {
	v.threeCauses()
	q := testQueue
	newest := "r y no order #×1; " + q + " x no order #×3; " + q + " x no user # in …×5"
	largest := q + " x no user # in …×5; " + q + " x no order #×3; r y no order #×1"
	for _, limit := range []int{1, 2, 3, 1000} {
		v.wantGroups(engine.DeadGroupQuery{Limit: limit}, newest)
		v.wantGroups(engine.DeadGroupQuery{Limit: limit, Order: engine.DeadNewest}, newest)
		v.wantGroups(engine.DeadGroupQuery{Limit: limit, Order: engine.DeadLargest}, largest)
	}
	for _, bad := range []engine.DeadGroupQuery{{Limit: -1}, {Limit: 1001}, {Order: "by colour"}, {After: "x"}} {
		_, err := able[engine.DeadGroups](v).DeadGroups(v.ctx, bad)
		if forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("%+v gave %v, want code invalid", bad, err)
		}
	}
}

func deadSeqs(v *env) {
	dg := able[engine.DeadGroups](v)
	v.threeCauses()
	var want []int64
	for _, l := range slices.Backward(v.dead(engine.DeadQuery{})) {
		want = append(want, l.Seq)
	}
	list := func(q engine.DeadQuery, after int64) []int64 {
		seqs, err := dg.DeadSeqs(v.ctx, q, after)
		if err != nil {
			v.failf("seqs of %+v: %v", q, err)
		}
		return seqs
	}
	users := v.dead(engine.DeadQuery{ID: "a0"})[0].Fingerprint
	for _, c := range []struct {
		q     engine.DeadQuery
		after int64
		want  []int64
	}{
		{engine.DeadQuery{}, 0, want},
		{engine.DeadQuery{Limit: 2}, want[3], want[4:6]},
		{engine.DeadQuery{Before: want[8]}, want[6], want[7:8]},
		{engine.DeadQuery{Group: users}, want[0], want[1:5]},
		{engine.DeadQuery{Code: "y"}, 0, want[8:]},
		{engine.DeadQuery{Queue: "r", Code: "x"}, 0, nil},
	} {
		if got := list(c.q, c.after); !slices.Equal(got, c.want) {
			v.failf("%+v after %d gave %v, want %v", c.q, c.after, got, c.want)
		}
	}
}

func deadEnds(v *env) {
	for i := range 4 {
		v.killBy(msg(fmt.Sprint("a", i), inGroup("g")), "x", "why")
	}
	l := v.dead(engine.DeadQuery{}) // a3 … a0
	next := func(id string) *forebay.Message {
		m := msg(id, inGroup("g"), inQueue("r"))
		return &m
	}
	bad := next("bad")
	bad.Queue = "no queue"
	errs, err := able[engine.DeadGroups](v).EndDead(v.ctx, []engine.DeadEnd{
		{Seq: l[0].Seq, Next: next("n3")}, {Seq: l[1].Seq, Next: bad}, {Seq: l[2].Seq, Reason: "test traffic"},
		{Seq: l[3].Seq, Next: next("n0")}, {Seq: l[3].Seq, Next: next("n4")}, {Seq: 1 << 40},
	})
	if err != nil {
		v.failf("end: %v", err)
	}
	v.codes(errs, "", forebay.CodeInvalid, "", "", forebay.CodeNotFound, forebay.CodeNotFound)
	v.wantDead(engine.DeadQuery{}, "a2")
	v.want(v.receive(engine.Receive{Queue: "r", Max: 10, Lease: v.lease()}), "n0", "n3")
	v.none()
	v.counts(testQueue, 0, 0, 0, 1)

	// A second try of what has been done: the message is there already.
	errs, err = able[engine.DeadGroups](v).EndDead(v.ctx, []engine.DeadEnd{{Seq: l[1].Seq, Next: next("n0")}})
	if err != nil {
		v.failf("end: %v", err)
	}
	v.codes(errs, "")
	v.wantDead(engine.DeadQuery{})
	v.counts("r", 0, 2, 0, 0)
}

func deadEndHistory(v *env) {
	if v.h.Cannot[Ledger] != "" {
		return
	}
	v.add("j", "k")
	for range 2 {
		d := v.take(1)[0]
		v.codes(v.settle(forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Dead, Cause: cause("x")}), "")
	}
	next := msg("again")
	next.Job = &forebay.JobOptions{}
	errs, err := able[engine.DeadGroups](v).EndDead(v.ctx, []engine.DeadEnd{
		{Seq: v.dead(engine.DeadQuery{ID: "j"})[0].Seq, Reason: "test traffic"}, {Seq: v.dead(engine.DeadQuery{ID: "k"})[0].Seq, Next: &next},
	})
	if err != nil {
		v.failf("end: %v", err)
	}
	v.codes(errs, "", "")
	for id, want := range map[string]string{"j": "discarded test traffic", "k": "replayed as job again"} {
		page, err := able[engine.History](v).History(v.ctx, engine.HistoryQuery{Job: id})
		if err != nil || len(page.Events) == 0 {
			v.failf("history of %s: %v %v", id, page, err)
		}
		if last := page.Events[len(page.Events)-1]; fmt.Sprint(last.Type, " ", last.Text) != want {
			v.failf("the history of %s ends with %+v, want %q", id, last, want)
		}
	}
	v.noJob("j", "k")
	if j := v.job("again"); j.State != forebay.StateWaiting {
		v.failf("what took the place is %s", j.State)
	}
}

func deadGroupsReopened(v *env) {
	v.threeCauses()
	v.reopen()
	v.killBy(msg("a9"), "x", "no user 9 in 'shop 9'")
	all := v.wantGroups(engine.DeadGroupQuery{Order: engine.DeadLargest}, testQueue+" x no user # in …×6; "+testQueue+" x no order #×3; r y no order #×1")
	if n := len(v.dead(engine.DeadQuery{Group: all[0].Fingerprint})); n != 6 {
		v.failf("%d dead letters are of the group, want 6", n)
	}
}

// What is found to be poison when it is handed out was begun by nobody.
func deadUnbegun(v *env) {
	v.send(msg("a"))
	v.end(v.one("a"), forebay.Retry, 0)
	v.codes(v.settle(forebay.Settlement{Receipt: v.one("a").Receipt, Verdict: forebay.Dead, Cause: cause("x"), Unbegun: true}), "")
	if l := v.wantDead(engine.DeadQuery{}, "a")[0]; l.Attempts != 1 || l.Deliveries != 1 || len(l.Failures) != 1 {
		v.failf("dead letter %+v, want 1 attempt, 1 delivery and 1 failure", l)
	}
	v.none()
}
