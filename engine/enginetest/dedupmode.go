package enginetest

import (
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
)

func dedupModeCases() []testCase {
	return []testCase{
		{name: "dedup mode/windowed: while it is not finished, and within the window", invariants: []int{2}, needs: Ledger, run: modeWindowed},
		{name: "dedup mode/until finished: no end leaves a lock", invariants: []int{2}, needs: Ledger, run: modeUntilFinished},
		{name: "dedup mode/until finished: neither retry, release nor lost lease opens it", invariants: []int{2}, needs: Ledger, run: modeStillThere},
		{name: "dedup mode/throttle: by the window alone", invariants: []int{2}, needs: Ledger, run: modeThrottle},
		{name: "dedup mode/debounce: replaces and waits anew", invariants: []int{2}, needs: Ledger, run: modeDebounce},
		{name: "dedup mode/debounce: one that has begun is left alone", invariants: []int{2}, needs: Ledger, run: modeDebounceBegun},
		{name: "dedup mode/keep last: one waits behind the active one", invariants: []int{2, 6}, needs: Ledger, run: modeKeepLast},
		{name: "dedup mode/keep last: through retry, cancel and death", invariants: []int{2}, needs: Ledger, run: modeKeepLastEnds},
		{name: "dedup mode/a key is one of its queue", needs: Ledger, run: modeQueues},
		{name: "dedup mode/in one call", invariants: []int{2}, needs: Ledger, run: modeOneCall},
		{name: "dedup mode/side by side", invariants: []int{2}, needs: Ledger, run: modeConcurrently},
		{name: "dedup mode/outlives a restart", invariants: []int{2}, needs: Ledger, reopens: true, run: modeReopen},
	}
}

var dedupModes = []forebay.DedupMode{
	forebay.DedupWindowed, forebay.DedupUntilFinished, forebay.DedupThrottle, forebay.DedupDebounce, forebay.DedupKeepLast,
}

// keyed makes a job with the one key of a mode; its id is its body.
func keyed(mode forebay.DedupMode, id string, changes ...func(*forebay.Message)) forebay.Message {
	m := job(id, withKey("key of "+string(mode)), withWindow(time.Hour), withBody(`"`+id+`"`), opts(func(o *forebay.JobOptions) { o.Dedup = mode }))
	for _, change := range changes {
		change(&m)
	}
	return m
}

// stores wants a job stored as one of its own.
func (v *env) stores(m forebay.Message) {
	v.Helper()
	v.fresh(v.send(m)[0], m.ID)
}

// refusedFor wants a job to be a duplicate that changes nothing.
func (v *env) refusedFor(m forebay.Message, first string) {
	v.Helper()
	r := v.send(m)[0]
	if !r.Duplicate || r.ID != first || r.Replaced {
		v.failf("send of %q gave %+v, want a duplicate of %q", m.ID, r, first)
	}
	v.noJob(m.ID)
}

// replaces wants a job to give its payload to an earlier one.
func (v *env) replaces(m forebay.Message, first string) {
	v.Helper()
	r := v.send(m)[0]
	if !r.Duplicate || !r.Replaced || r.Conflict || r.ID != first {
		v.failf("send of %q gave %+v, want the payload of %q replaced", m.ID, r, first)
	}
	v.noJob(m.ID)
	if got := string(v.job(first).Payload); got != string(m.Payload) {
		v.failf("%q has the payload %s, want that of %q", first, got, m.ID)
	}
}

// body wants a delivery with this id and the payload of that one.
func (v *env) body(d forebay.Delivery, id, body string) {
	v.Helper()
	if d.ID != id || string(d.Payload) != `"`+body+`"` {
		v.failf("%q came with %s, want %q with the payload of %q", d.ID, d.Payload, id, body)
	}
}

func modeWindowed(v *env) {
	windowed := func(id string) forebay.Message { return keyed(forebay.DedupWindowed, id, withWindow(10*v.unit)) }
	v.stores(windowed("1"))
	v.refusedFor(windowed("2"), "1")
	v.pass(11 * v.unit)
	v.refusedFor(windowed("3"), "1") // still there
	v.ack(v.one("1"))
	v.stores(windowed("4"))
	v.ack(v.one("4"))
	v.refusedFor(windowed("5"), "4") // finished, within the window
	v.pass(11 * v.unit)
	v.stores(windowed("6"))
}

// endsOfJobs are all ways in which a job can finish, by name.
func endsOfJobs(v *env) map[string]func(id string) {
	return map[string]func(id string){
		"completed":          func(id string) { v.ack(v.one(id)) },
		"dead":               func(id string) { v.endAs(v.one(id), forebay.Dead) },
		"cancelled by it":    func(id string) { v.endAs(v.one(id), forebay.Cancelled) },
		"expired by it":      func(id string) { v.endAs(v.one(id), forebay.Expired) },
		"cancelled, waiting": func(id string) { v.cancelled(forebay.StateCancelled, id) },
		"cancelled, active": func(id string) {
			v.one(id)
			v.cancelled(forebay.StateActive, id)
			v.pass(v.lease() + v.unit)
		},
		"removed": func(id string) {
			v.ack(v.one(id))
			v.codes(v.removeJobs(id), "")
		},
		"discarded": func(id string) {
			v.endAs(v.one(id), forebay.Dead)
			v.codes(v.removeJobs(id), "")
		},
		"expired":  func(string) { v.pass(6 * v.unit) },
		"deadline": func(string) { v.pass(6 * v.unit) },
	}
}

func modeUntilFinished(v *env) {
	n := 0
	next := func(changes ...func(*forebay.Message)) forebay.Message {
		n++
		return keyed(forebay.DedupUntilFinished, fmt.Sprint("m", n), changes...)
	}
	for name, end := range endsOfJobs(v) {
		var changes []func(*forebay.Message)
		switch name {
		case "expired":
			changes = append(changes, expires(time.Now().Add(5*v.unit)))
		case "deadline":
			changes = append(changes, deadline(time.Now().Add(5*v.unit)))
		}
		m := next(changes...)
		if r := v.send(m)[0]; r.Duplicate {
			v.failf("before %s: send gave %+v, though none is there", name, r)
		}
		v.refusedFor(next(), m.ID)
		end(m.ID)
		again := next()
		if r := v.send(again)[0]; r.Duplicate {
			v.failf("after the first is %s: send gave %+v, and nobody holds the key", name, r)
		}
		v.ack(v.one(again.ID))
	}
}

func modeStillThere(v *env) {
	for _, mode := range []forebay.DedupMode{forebay.DedupUntilFinished, forebay.DedupWindowed} {
		n := 0
		same := func() forebay.Message {
			n++
			return keyed(mode, fmt.Sprint(mode, "/", n), withWindow(v.unit))
		}
		first := same()
		v.stores(first)
		v.pass(2 * v.unit)
		d := v.one(first.ID)
		v.refusedFor(same(), first.ID)
		v.end(d, forebay.Retry, 5*v.unit)
		v.refusedFor(same(), first.ID)
		v.pass(6 * v.unit)
		v.end(v.one(first.ID), forebay.Release, 5*v.unit)
		v.refusedFor(same(), first.ID)
		v.pass(6 * v.unit)
		d = v.one(first.ID)
		v.pass(v.lease() + v.unit)
		v.refusedFor(same(), first.ID)
		v.codes(v.settle(acks([]forebay.Delivery{d})...), forebay.CodeLeaseLost)
		v.refusedFor(same(), first.ID)
		v.ack(v.one(first.ID))
		v.stores(same())
		v.ack(v.take(1)...)
	}
}

func modeThrottle(v *env) {
	throttled := func(id string) forebay.Message { return keyed(forebay.DedupThrottle, id, withWindow(10*v.unit)) }
	v.stores(throttled("1"))
	v.refusedFor(throttled("2"), "1")
	v.ack(v.one("1"))
	v.refusedFor(throttled("3"), "1") // also when it is finished
	v.pass(11 * v.unit)
	v.stores(throttled("4"))
	v.pass(11 * v.unit)
	v.stores(throttled("5")) // though 4 is not finished
	v.refusedFor(throttled("6"), "5")
	v.cancelled(forebay.StateCancelled, "5")
	v.refusedFor(throttled("7"), "5")
	v.ack(v.one("4"))
	v.refusedFor(throttled("8"), "5")
	v.pass(11 * v.unit)
	v.stores(throttled("9"))
}
