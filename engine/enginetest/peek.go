package enginetest

import (
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func peekCases() []testCase {
	return []testCase{
		{name: "peek/each as it is, without a hand-out", needs: Peeking, run: peekStates},
		{name: "peek/page by page, each once", invariants: []int{10}, needs: Peeking, run: peekPages},
		{name: "peek/whole messages of one queue", needs: Peeking, run: peekMessages},
		{name: "peek/what goes meanwhile", needs: Peeking, run: peekMeanwhile},
		{name: "peek/bounds", invariants: []int{8}, needs: Peeking, run: peekBounds},
		{name: "peek/after a reopening", reopens: true, needs: Peeking, run: peekReopen},
	}
}

// peek lists all of a queue, in pages of so many.
func (v *env) peek(queue string, limit int) map[string]engine.Peeked {
	v.Helper()
	all := make(map[string]engine.Peeked)
	for q := (engine.PeekQuery{Queue: queue, Limit: limit}); ; {
		page, err := able[engine.Peeker](v).Peek(v.ctx, q)
		if err != nil || limit > 0 && len(page.Messages) > limit {
			v.failf("peek of at most %d gave %d, %v", limit, len(page.Messages), err)
		}
		for _, p := range page.Messages {
			if _, twice := all[p.Message.ID]; twice {
				v.failf("%q was listed twice", p.Message.ID)
			}
			all[p.Message.ID] = p
		}
		if page.Next == "" {
			return all
		}
		if page.Next == q.After {
			v.failf("the page after %q is followed by itself", q.After)
		}
		q.After = page.Next
	}
}

// seen wants a message to be listed so.
func (v *env) seen(p engine.Peeked, where engine.Where, deliveries, attempts int) {
	v.Helper()
	if p.Where != where || p.Deliveries != deliveries || p.Attempts != attempts ||
		p.NotBefore.IsZero() != (where != engine.WhereDelayed) || p.LeaseUntil.IsZero() != (where != engine.WhereActive) {
		v.failf("listed as %+v, want it %s, deliveries %d, attempts %d", p, where, deliveries, attempts)
	}
}

func peekStates(v *env) {
	sent := time.Now()
	v.put("gone", "retried", "released", "expired", "active", "waiting")
	ds := v.take(5)
	v.putGroup("g", "g1", "g2") // now: of one moment, none need go before another
	v.send(msg("delayed", notBefore(sent.Add(50*v.unit))))
	v.ack(ds[0])
	v.end(ds[1], forebay.Retry, 20*v.unit)
	v.end(ds[2], forebay.Release, 0)
	v.codes(v.extend(v.unit, ds[3].Receipt), "")
	v.pass(2 * v.unit)
	for range 2 { // looking changes nothing
		all := v.peek(testQueue, 0)
		if len(all) != 8 {
			v.failf("%d are listed, want 8: %+v", len(all), all)
		}
		v.seen(all["retried"], engine.WhereDelayed, 1, 1)
		v.seen(all["released"], engine.WhereWaiting, 0, 0)
		v.seen(all["expired"], engine.WhereWaiting, 1, 0)
		v.seen(all["active"], engine.WhereActive, 1, 0)
		v.seen(all["waiting"], engine.WhereWaiting, 0, 0)
		v.seen(all["g1"], engine.WhereWaiting, 0, 0)
		v.seen(all["g2"], engine.WhereWaiting, 0, 0)
		v.seen(all["delayed"], engine.WhereDelayed, 0, 0)
		v.exactly("sent at", all["retried"].SentAt.Sub(sent), 0)
		v.exactly("not before", all["delayed"].NotBefore.Sub(sent), 50*v.unit)
		v.exactly("leased until", all["active"].LeaseUntil.Sub(sent), v.lease())
	}
	v.counts(testQueue, 5, 1, 2, 0)
	v.pass(19 * v.unit)
	v.seen(v.peek(testQueue, 0)["retried"], engine.WhereWaiting, 1, 1)
	v.ack(ds[4])
	for _, d := range v.take(10) {
		if want := map[string]int{"retried": 2, "expired": 2}[d.ID]; d.Deliveries != max(want, 1) {
			v.failf("%q came as delivery %d after it was looked at", d.ID, d.Deliveries)
		}
	}
}

func peekPages(v *env) {
	const n = 700
	for i, id := range ids("m", n) {
		m := msg(id)
		if v.h.Cannot[Priorities] == "" {
			m.Priority = forebay.At(i % 10)
		}
		if i%3 == 0 {
			m.Group = fmt.Sprint("g", i%7)
		}
		v.send(m, msg("other "+id, inQueue("r")))
	}
	for i, d := range v.take(100) {
		switch i % 3 {
		case 0:
			v.end(d, forebay.Retry, 0)
		case 1:
			v.end(d, forebay.Release, 10*v.lease())
		}
	}
	for _, limit := range []int{0, 1, 7, 100, engine.MaxPeek} {
		if all := v.peek(testQueue, limit); len(all) != n {
			v.failf("in pages of %d, %d are listed, want %d", limit, len(all), n)
		}
	}
}

func peekMessages(v *env) {
	m := msg("a", inGroup("g"), withLimit("l"))
	m.Headers = map[string]string{"n": "größe"}
	m.Payload = []byte{0, 1, 255}
	v.send(m, msg("b", inQueue("r")))
	v.same(v.peek(testQueue, 0)["a"].Message, m)
	v.one("a")
	v.same(v.peek(testQueue, 0)["a"].Message, m)
	if all := v.peek("r", 0); len(all) != 1 || all["b"].Message.Queue != "r" {
		v.failf("the other queue has %+v", all)
	}
	if all := v.peek("nobody", 0); len(all) != 0 {
		v.failf("an unknown queue has %+v", all)
	}
}

// peekMeanwhile acks between two pages: what stays must come, what is gone may not
// be listed after it.
func peekMeanwhile(v *env) {
	v.put(ids("m", 30)...)
	p := able[engine.Peeker](v)
	page, err := p.Peek(v.ctx, engine.PeekQuery{Queue: testQueue, Limit: 10})
	if err != nil || len(page.Messages) != 10 {
		v.failf("peek gave %+v, %v", page, err)
	}
	seen := make(map[string]bool)
	for _, one := range page.Messages {
		seen[one.Message.ID] = true
	}
	gone := make(map[string]bool)
	for _, d := range v.take(20) {
		v.ack(d)
		gone[d.ID] = true
	}
	for page.Next != "" {
		if page, err = p.Peek(v.ctx, engine.PeekQuery{Queue: testQueue, Limit: 10, After: page.Next}); err != nil {
			v.failf("peek: %v", err)
		}
		for _, one := range page.Messages {
			if id := one.Message.ID; seen[id] || gone[id] {
				v.failf("%q was listed twice, or after it was gone", id)
			}
			seen[one.Message.ID] = true
		}
	}
	for _, id := range ids("m", 30) {
		if !seen[id] && !gone[id] {
			v.failf("%q was never listed", id)
		}
	}
}

func peekBounds(v *env) {
	v.put("a")
	for _, q := range []engine.PeekQuery{
		{Queue: testQueue, Limit: -1}, {Queue: testQueue, Limit: engine.MaxPeek + 1},
		{Queue: testQueue, After: "no place"}, {Queue: ""}, {Queue: "a b"},
	} {
		if page, err := able[engine.Peeker](v).Peek(v.ctx, q); forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("peek %+v gave %+v, %v; want code invalid", q, page, err)
		}
	}
}

func peekReopen(v *env) {
	v.put("a", "b", "c")
	ds := v.take(2)
	v.end(ds[0], forebay.Retry, 10*v.unit)
	v.reopen()
	all := v.peek(testQueue, 1)
	v.seen(all["a"], engine.WhereDelayed, 1, 1)
	v.seen(all["b"], engine.WhereWaiting, 1, 0)
	v.seen(all["c"], engine.WhereWaiting, 0, 0)
}
