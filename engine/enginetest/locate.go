package enginetest

import (
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func locateCases() []testCase {
	return []testCase{
		{name: "locate/through a life", needs: Locating, run: locateLife},
		{name: "locate/delayed", needs: Locating, run: locateDelayed},
		{name: "locate/dead", needs: Locating, run: locateDead},
		{name: "locate/done while its record lives", invariants: []int{2, 12}, needs: Locating, run: locateDone},
	}
}

func (v *env) at(id string, where engine.Where) engine.Location {
	v.Helper()
	l, err := able[engine.Locator](v).Locate(v.ctx, id)
	if err != nil {
		v.failf("locate %q: %v", id, err)
	}
	if l.Where != where {
		v.failf("%q is %q (%+v), want %q", id, l.Where, l, where)
	}
	return l
}

func locateLife(v *env) {
	v.at("a", engine.WhereUnknown)
	sent := time.Now()
	v.send(msg("a", inQueue("r")))
	l := v.at("a", engine.WhereWaiting)
	v.exactly("sent at", l.SentAt.Sub(sent), 0)
	if l.Queue != "r" || l.Attempts != 0 || l.Deliveries != 0 || l.Last != nil {
		v.failf("a new message is at %+v", l)
	}
	ds := v.receive(engine.Receive{Queue: "r", Max: 1, Lease: 3 * v.unit})
	if l := v.at("a", engine.WhereActive); l.Deliveries != 1 || l.Attempts != 0 {
		v.failf("an active message is at %+v", l)
	}
	v.pass(4 * v.unit)
	v.at("a", engine.WhereWaiting)
	ds = v.receive(engine.Receive{Queue: "r", Max: 1, Lease: v.lease()})
	v.codes(v.settle(forebay.Settlement{Receipt: ds[0].Receipt, Verdict: forebay.Retry, Cause: cause("x")}), "")
	l = v.at("a", engine.WhereWaiting)
	if l.Attempts != 1 || l.Deliveries != 2 || l.Last == nil {
		v.failf("a failed message is at %+v", l)
	}
	v.sameCause(*l.Last, cause("x"))
	v.ack(v.takeAll("r")...)
	if l := v.at("a", engine.WhereDone); l.Queue != "r" {
		v.failf("a done message is at %+v", l)
	}
}

func locateDelayed(v *env) {
	due := time.Now().Add(5 * v.unit)
	v.send(msg("a", notBefore(due)))
	l := v.at("a", engine.WhereDelayed)
	v.exactly("not before", l.NotBefore.Sub(due), 0)
	v.pass(6 * v.unit)
	v.at("a", engine.WhereWaiting)
	settled := time.Now()
	v.end(v.one("a"), forebay.Retry, 7*v.unit)
	l = v.at("a", engine.WhereDelayed)
	v.exactly("not before", l.NotBefore.Sub(settled), 7*v.unit)
}

func locateDead(v *env) {
	v.kill(msg("a"), "x")
	l := v.at("a", engine.WhereDead)
	if l.Queue != testQueue || l.Last == nil {
		v.failf("a dead message is at %+v", l)
	}
	v.sameCause(*l.Last, cause("x"))
	if v.h.Cannot[DeadLetters] != "" {
		return
	}
	if seq := v.dead(engine.DeadQuery{})[0].Seq; l.DeadSeq != seq {
		v.failf("located as dead letter %d, listed as %d", l.DeadSeq, seq)
	}
	v.codes(v.replay(l.DeadSeq), "")
	v.at("a", engine.WhereWaiting)
}

func locateDone(v *env) {
	v.send(msg("a", withWindow(10*v.unit)))
	v.ack(v.one("a"))
	v.at("a", engine.WhereDone)
	v.pass(20 * v.unit)
	v.at("a", engine.WhereUnknown)
}
