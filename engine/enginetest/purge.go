package enginetest

import (
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func purgeCases() []testCase {
	return []testCase{
		{name: "purge/drops what is not active", invariants: []int{12}, needs: Purging, run: purge},
		{name: "purge/lets groups go on", invariants: []int{6}, needs: Purging, run: purgeGroups},
	}
}

func (v *env) purge(queue string) int64 {
	v.Helper()
	n, err := able[engine.Purger](v).Purge(v.ctx, queue)
	if err != nil {
		v.failf("purge of %q: %v", queue, err)
	}
	return n
}

func purge(v *env) {
	v.put("active", "a", "b", "c")
	d := v.take(1)[0]
	v.send(msg("late", notBefore(time.Now().Add(5*v.unit))), msg("other", inQueue("r")))
	if v.h.Cannot[DeadLetters] == "" {
		v.end(v.take(1)[0], forebay.Dead, 0) // a
	} else {
		v.ack(v.take(1)...)
	}
	if n := v.purge(testQueue); n != 3 {
		v.failf("purge dropped %d, want 3", n)
	}
	v.none()
	if v.h.Cannot[DeadLetters] == "" {
		v.counts(testQueue, 0, 1, 0, 1)
	}
	v.codes(v.extend(v.lease(), d.Receipt), "")
	v.pass(6 * v.unit)
	v.none()
	v.fresh(v.send(msg("b"))[0], "b") // its record left with it
	v.duplicate(v.send(msg("active"))[0], "active", false)
	v.ack(d, v.one("b"))
	v.want(v.takeAll("r"), "other")
	if n := v.purge("nobody"); n != 0 {
		v.failf("purge of an unknown queue dropped %d", n)
	}
}

func purgeGroups(v *env) {
	v.putGroup("g", "g1", "g2", "g3")
	ds := v.take(1)
	v.end(ds[0], forebay.Retry, v.lease())
	if n := v.purge(testQueue); n != 3 {
		v.failf("purge dropped %d, want 3", n)
	}
	v.putGroup("g", "g4")
	v.one("g4")
}
