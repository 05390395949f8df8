package enginetest

import (
	"cmp"
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func rateCases() []testCase {
	return []testCase{
		{name: "rate/of a queue", invariants: []int{7}, needs: Limiting, run: rateQueue},
		{name: "rate/of a key", invariants: []int{7}, needs: Limiting, run: rateKey},
		{name: "rate/without a burst they come one by one", invariants: []int{7}, needs: Limiting, run: rateEven},
		{name: "rate/an idle time saves no more than the burst", invariants: []int{7}, needs: Limiting, run: rateIdle},
		{name: "rate/a receiver wakes when it may go on", invariants: []int{7, 11}, needs: Limiting, run: rateWakes},
	}
}

// start is one hand-out.
type start struct {
	at time.Time
	d  forebay.Delivery
}

// drain takes all n messages as fast as the engine gives them, acking each.
func (v *env) drain(n int) []start {
	v.Helper()
	var got []start
	for len(got) < n {
		ds := v.receive(engine.Receive{Queue: testQueue, Max: 10, Wait: 60 * v.unit, Lease: v.lease()})
		if len(ds) == 0 {
			v.failf("%d of %d came, then none in %v", len(got), n, 60*v.unit)
		}
		at := time.Now()
		for _, d := range ds {
			got = append(got, start{at, d})
		}
		v.ack(ds...)
	}
	return got
}

// within wants that no window of length w holds more than Burst + Count×w/Per.
func (v *env) within(got []start, r engine.Rate) {
	v.Helper()
	per, burst := cmp.Or(r.Per, time.Second), cmp.Or(r.Burst, 1)
	for i := range got {
		for j := i; j < len(got); j++ {
			// A store may keep milliseconds, so a window is one longer than it seems.
			w := got[j].at.Sub(got[i].at) + time.Millisecond
			most := float64(burst) + float64(r.Count)*float64(w)/float64(per)
			if n := j - i + 1; float64(n) > most {
				v.failf("%d started within %v, at most %.2f may", n, w, most)
			}
		}
	}
}

func rateQueue(v *env) {
	r := engine.Rate{Count: 10, Per: 10 * v.unit, Burst: 5}
	v.limit(engine.QueueLimits{Rate: r})
	v.put(ids("m", 40)...)
	begin := time.Now()
	got := v.drain(40)
	v.within(got, r)
	// 5 at once and 35 more, one each unit: neither slower.
	if took := got[39].at.Sub(begin); v.h.Pass == nil && took > 37*v.unit {
		v.failf("40 starts took %v, the limit asks for %v only", took, 35*v.unit)
	}
}

func rateKey(v *env) {
	r := engine.Rate{Count: 1, Per: v.unit, Burst: 2}
	v.limit(engine.QueueLimits{KeyRate: r})
	for i := range 30 {
		v.send(msg(fmt.Sprint("m", i), withLimit(fmt.Sprint("k", i%3))))
	}
	v.put(ids("free", 5)...)
	if ds := v.take(100); len(ds) != 3*2+5 {
		v.failf("received %v, want two of each key and five without", idsOf(ds))
	}
	byKey := make(map[string][]start)
	for _, s := range v.drain(24) {
		byKey[s.d.LimitKey] = append(byKey[s.d.LimitKey], s)
	}
	for key, got := range byKey {
		if len(got) != 8 {
			v.failf("%d came of key %q, want 8", len(got), key)
		}
		v.within(got, engine.Rate{Count: 1, Per: v.unit}) // the burst is used up
	}
}

func rateEven(v *env) {
	r := engine.Rate{Count: 4, Per: 8 * v.unit}
	v.limit(engine.QueueLimits{Rate: r})
	v.put(ids("m", 10)...)
	v.within(v.drain(10), r)
}

func rateIdle(v *env) {
	r := engine.Rate{Count: 1, Per: v.unit, Burst: 3}
	v.limit(engine.QueueLimits{Rate: r})
	v.put("a")
	v.drain(1)
	v.pass(100 * v.unit)
	v.put(ids("m", 10)...)
	if ds := v.take(10); len(ds) != 3 {
		v.failf("received %d at once after an idle time, want the burst of 3", len(ds))
	}
	v.none()
}

func rateWakes(v *env) {
	v.limit(engine.QueueLimits{Rate: engine.Rate{Count: 1, Per: 5 * v.unit}})
	v.put("a", "b")
	v.want(v.take(10), "a")
	begin := time.Now()
	ds := v.receive(engine.Receive{Queue: testQueue, Max: 10, Wait: 60 * v.unit, Lease: v.lease()})
	v.want(ds, "b")
	v.exactly("a wait for the rate", time.Since(begin), 5*v.unit)
}
