package enginetest

import (
	"fmt"
	"sync/atomic"

	"github.com/forebayhq/forebay"
)

func dedupCases() []testCase {
	return []testCase{
		{name: "dedup/by id in one call", invariants: []int{2}, run: dedupOneCall},
		{name: "dedup/by id across calls", invariants: []int{2}, run: dedupAcrossCalls},
		{name: "dedup/by id while active and after ack", invariants: []int{2}, run: dedupAfterAck},
		{name: "dedup/by key", invariants: []int{2}, needs: DedupKeys, run: dedupKey},
		{name: "dedup/by key in one call", invariants: []int{2}, needs: DedupKeys, run: dedupKeyOneCall},
		{name: "dedup/side by side", invariants: []int{2}, run: dedupConcurrent},
		{name: "dedup/another payload is a conflict", invariants: []int{2}, run: dedupConflict},
		{name: "dedup/a fingerprint stands for the payload", invariants: []int{2}, run: dedupFingerprint},
		{name: "dedup/the window passes", invariants: []int{2, 12}, run: dedupWindowPasses},
		{name: "dedup/the window does not pass over what is there", invariants: []int{2}, run: dedupOutlivesWindow},
		{name: "dedup/nothing stored leaves no record", invariants: []int{2}, run: dedupNoRecord},
	}
}

// duplicate wants a result that names the first one's id.
func (v *env) duplicate(r forebay.SendResult, first string, conflict bool) {
	v.Helper()
	if !r.Duplicate || r.ID != first || r.Conflict != conflict {
		v.failf("result %+v, want a duplicate of %q with conflict %v", r, first, conflict)
	}
}

func (v *env) fresh(r forebay.SendResult, id string) {
	v.Helper()
	if r.Duplicate || r.Conflict || r.ID != id {
		v.failf("result %+v, want %q stored", r, id)
	}
}

func dedupOneCall(v *env) {
	res := v.send(msg("a"), msg("b"), msg("a"))
	v.fresh(res[0], "a")
	v.fresh(res[1], "b")
	v.duplicate(res[2], "a", false)
	v.want(v.takeAll(testQueue), "a", "b")
}

func dedupAcrossCalls(v *env) {
	v.put("a")
	v.duplicate(v.send(msg("a"))[0], "a", false)
	res := v.send(msg("b"), msg("a"), msg("c"))
	v.fresh(res[0], "b")
	v.duplicate(res[1], "a", false)
	v.fresh(res[2], "c")
	v.want(v.takeAll(testQueue), "a", "b", "c")
}

func dedupAfterAck(v *env) {
	v.put("a")
	d := v.one("a")
	v.duplicate(v.send(msg("a"))[0], "a", false)
	v.ack(d)
	v.pass(v.unit)
	v.duplicate(v.send(msg("a"))[0], "a", false)
	v.none()
}

func dedupKey(v *env) {
	v.send(msg("a", withKey("k"), withBody("x")))
	v.duplicate(v.send(msg("b", withKey("k"), withBody("x")))[0], "a", false)
	v.fresh(v.send(msg("c", withKey("k2")))[0], "c")
	// The id counts as well, whatever the key.
	v.duplicate(v.send(msg("a", withKey("k3"), withBody("x")))[0], "a", false)
	v.ack(v.takeAll(testQueue)...)
	v.duplicate(v.send(msg("d", withKey("k"), withBody("x")))[0], "a", false)
	v.none()
}

func dedupKeyOneCall(v *env) {
	res := v.send(msg("a", withKey("k")), msg("b", withKey("k")), msg("c", withKey("l")))
	v.fresh(res[0], "a")
	v.duplicate(res[1], "a", true)
	v.fresh(res[2], "c")
	v.want(v.takeAll(testQueue), "a", "c")
}

func dedupConcurrent(v *env) {
	const senders = 32
	for round := range 10 {
		id := fmt.Sprint("m", round)
		var stored atomic.Int32
		v.each(senders, func(int) error {
			res, err := v.e.Send(v.ctx, []forebay.Message{msg(id)})
			if err != nil {
				return err
			}
			if res[0].Err != nil || res[0].ID != id {
				return fmt.Errorf("result %+v", res[0])
			}
			if !res[0].Duplicate {
				stored.Add(1)
			}
			return nil
		})
		if n := stored.Load(); n != 1 {
			v.failf("%d of %d senders were told that %q was new", n, senders, id)
		}
		v.one(id)
	}
}

func dedupConflict(v *env) {
	v.send(msg("a", withBody("one")))
	v.duplicate(v.send(msg("a", withBody("two")))[0], "a", true)
	v.duplicate(v.send(msg("a", withBody("one")))[0], "a", false)
	d := v.one("a")
	if string(d.Payload) != "one" {
		v.failf("payload is %q, want the first one's", d.Payload)
	}
	v.ack(d)
	v.duplicate(v.send(msg("a", withBody("two")))[0], "a", true)
	if s := v.stats(testQueue); s.Duplicate != 3 || s.Conflict != 2 {
		v.failf("stats count %d duplicates, %d conflicts; want 3 and 2", s.Duplicate, s.Conflict)
	}
}

func dedupFingerprint(v *env) {
	with := func(print uint64, body string) forebay.Message {
		return msg("a", withBody(body), func(m *forebay.Message) { m.Fingerprint = print })
	}
	v.send(with(7, "one"))
	v.duplicate(v.send(with(7, "two"))[0], "a", false)
	v.duplicate(v.send(with(8, "one"))[0], "a", true)
	d := v.one("a")
	if d.Fingerprint != 0 {
		v.failf("fingerprint %d was delivered", d.Fingerprint)
	}
	v.ack(d)
	v.duplicate(v.send(with(7, "three"))[0], "a", false)
	v.duplicate(v.send(with(1<<64-1, "one"))[0], "a", true)
}

func dedupWindowPasses(v *env) {
	window := 10 * v.unit
	m := msg("a", withWindow(window))
	if v.h.Cannot[DedupKeys] == "" {
		m.DedupKey = "k"
	}
	v.send(m)
	v.ack(v.one("a"))
	v.pass(window - v.unit)
	v.duplicate(v.send(m)[0], "a", false)
	v.pass(2 * v.unit)
	v.fresh(v.send(m)[0], "a")
	v.ack(v.one("a"))
}

func dedupOutlivesWindow(v *env) {
	m := msg("a", withWindow(v.unit))
	v.send(m)
	v.pass(10 * v.unit)
	v.duplicate(v.send(m)[0], "a", false)
	d := v.one("a")
	v.pass(10 * v.unit)
	v.duplicate(v.send(m)[0], "a", false)
	v.end(d, forebay.Retry, 20*v.unit)
	v.pass(10 * v.unit)
	v.duplicate(v.send(m)[0], "a", false)
	v.pass(11 * v.unit)
	v.ack(v.one("a"))
	v.fresh(v.send(m)[0], "a")
}

func dedupNoRecord(v *env) {
	bad := msg("a", func(m *forebay.Message) { m.Payload = make([]byte, forebay.MaxPayloadBytes+1) })
	res, err := v.e.Send(v.ctx, []forebay.Message{bad})
	if err != nil || res[0].Err == nil {
		v.failf("send of an invalid message gave %+v, %v", res, err)
	}
	v.fresh(v.send(msg("a"))[0], "a")
}
