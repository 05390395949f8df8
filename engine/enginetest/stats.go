package enginetest

import (
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func statsCases() []testCase {
	return []testCase{
		{name: "stats/follow what happens", run: statsFollow},
		{name: "stats/of all queues, of some, of none", run: statsNames},
		{name: "stats/oldest is the oldest that waits", run: statsOldest},
		{name: "stats/bytes", run: statsBytes},
		{name: "stats/size on disk", needs: Sizing, run: statsSize},
	}
}

func statsFollow(v *env) {
	zero := forebay.QueueStats{Queue: testQueue}
	if s := v.stats(testQueue); s != zero {
		v.failf("an unknown queue has %+v", s)
	}
	v.put(ids("m", 10)...)
	v.send(msg("m1"), msg("late", notBefore(time.Now().Add(5*v.unit))))
	v.counts(testQueue, 10, 0, 1, 0)
	ds := v.short(6)
	v.counts(testQueue, 4, 6, 1, 0)
	v.ack(ds[0], ds[1])
	v.counts(testQueue, 4, 4, 1, 0)
	v.end(ds[2], forebay.Retry, 2*v.unit)
	v.end(ds[3], forebay.Release, 0)
	v.counts(testQueue, 5, 2, 2, 0)
	v.pass(4 * v.unit) // the retry is due, the last two leases ran out
	v.counts(testQueue, 8, 0, 1, 0)
	v.pass(2 * v.unit)
	v.counts(testQueue, 9, 0, 0, 0)
	v.ack(v.takeAll(testQueue)...)
	v.counts(testQueue, 0, 0, 0, 0)
	s := v.stats(testQueue)
	if s.Sent != 11 || s.Duplicate != 1 || s.Conflict != 0 || s.Completed != 11 {
		v.failf("stats count %+v, want 11 sent, 1 duplicate, 11 completed", s)
	}
}

func statsNames(v *env) {
	v.send(msg("a", inQueue("q1")), msg("b", inQueue("q2")), msg("c", inQueue("q3")))
	v.ack(v.takeAll("q3")...)
	names := func(queues ...string) []string {
		qs, err := v.e.Stats(v.ctx, queues...)
		if err != nil {
			v.failf("stats of %v: %v", queues, err)
		}
		var out []string
		for _, q := range qs {
			out = append(out, q.Queue)
		}
		return out
	}
	if got := names("q2", "nobody", "q1"); !slices.Equal(got, []string{"q2", "nobody", "q1"}) {
		v.failf("stats of q2, nobody, q1 gave %v", got)
	}
	all := names()
	for _, q := range []string{"q1", "q2"} {
		if !slices.Contains(all, q) {
			v.failf("stats of all gave %v, without %s", all, q)
		}
	}
	if slices.Contains(all, "nobody") {
		v.failf("stats of all gave %v, with a queue that never was", all)
	}
}

func statsOldest(v *env) {
	if s := v.stats(testQueue); !s.Oldest.IsZero() {
		v.failf("an empty queue's oldest is from %v", s.Oldest)
	}
	first := time.Now()
	v.put("a")
	v.pass(v.unit)
	second := time.Now()
	v.put("b")
	v.exactly("the oldest's age", v.stats(testQueue).Oldest.Sub(first), 0)
	d := v.take(1)[0]
	v.exactly("the oldest's age", v.stats(testQueue).Oldest.Sub(second), 0)
	v.end(d, forebay.Release, 0)
	v.exactly("the oldest's age", v.stats(testQueue).Oldest.Sub(first), 0)
	v.ack(v.takeAll(testQueue)...)
	if s := v.stats(testQueue); !s.Oldest.IsZero() {
		v.failf("a drained queue's oldest is from %v", s.Oldest)
	}
}

func statsBytes(v *env) {
	v.put("a")
	small := v.stats(testQueue).Bytes
	v.send(msg("b", withBody(string(make([]byte, 100_000)))))
	large := v.stats(testQueue).Bytes
	if small == 0 && large == 0 {
		return // this engine does not know
	}
	if small <= 0 || large < small+100_000 {
		v.failf("bytes went from %d to %d with a payload of 100,000", small, large)
	}
	v.ack(v.takeAll(testQueue)...)
	if left := v.stats(testQueue).Bytes; left != 0 {
		v.failf("an empty queue has %d bytes", left)
	}
}

func statsSize(v *env) {
	used, free, err := able[engine.Sizer](v).Size(v.ctx)
	if err != nil || used < 0 || free < 0 {
		v.failf("size gave %d used, %d free, %v", used, free, err)
	}
}
