package enginetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func groupCases() []testCase {
	return []testCase{
		{name: "group/in order, one batch at a time", invariants: []int{6}, run: groupOrder},
		{name: "group/several in one batch, others go on", invariants: []int{6}, run: groupBatch},
		{name: "group/later ones wait for a retry", invariants: []int{6}, run: groupRetry},
		{name: "group/later ones wait for a release", invariants: []int{5, 6}, run: groupRelease},
		{name: "group/a released tail comes again in order", invariants: []int{5, 6}, run: groupReleaseTail},
		{name: "group/order across an expired lease", invariants: []int{4, 6}, run: groupExpiry},
		{name: "group/each of a batch has a lease of its own", invariants: []int{4, 6}, run: groupLeases},
		{name: "group/an ended lease gives back just that one", invariants: []int{6}, run: groupEnded},
		{name: "group/extending one hides all that come after it", invariants: []int{4, 6}, run: groupExtended},
		{name: "group/a dead letter lets the next go on", invariants: []int{6, 12}, run: groupDead},
		{name: "group/order beats priority", invariants: []int{6}, needs: Priorities, run: groupPriority},
		{name: "group/a settle wakes who waits for the next", invariants: []int{6, 11}, run: groupWakes},
		{name: "group/order with many consumers", invariants: []int{6}, run: groupConcurrently},
		{name: "group/groups of two queues are two", invariants: []int{6}, run: groupQueues},
	}
}

func (v *env) putGroup(group string, ids ...string) {
	v.Helper()
	v.putWith([]func(*forebay.Message){inGroup(group)}, ids...)
}

func groupOrder(v *env) {
	v.putGroup("g", ids("g", 4)...)
	for n := 1; n <= 4; n++ {
		ds := v.take(1)
		v.want(ds, fmt.Sprint("g", n))
		v.none()
		v.ack(ds...)
	}
}

func groupBatch(v *env) {
	v.putGroup("g", "g1", "g2", "g3")
	v.putGroup("h", "h1", "h2")
	v.put("free")
	ds := v.take(4)
	if len(ds) == 0 {
		v.failf("nothing came")
	}
	v.groupsInOrder(ds, nil)
	rest := v.takeAll(testQueue)
	for _, d := range rest {
		for _, held := range ds {
			if d.Group != "" && d.Group == held.Group {
				v.failf("%q came while %q of its group was active", d.ID, held.ID)
			}
		}
	}
	v.ack(append(ds, rest...)...)
	all := append(idsOf(ds), idsOf(rest)...)
	for range 6 {
		more := v.takeAll(testQueue)
		v.ack(more...)
		all = append(all, idsOf(more)...)
	}
	if len(all) != 6 {
		v.failf("received %v, want six messages", all)
	}
}

// groupsInOrder wants rising numbers after the first letter of the ids of each
// group, beginning after last[group].
func (v *env) groupsInOrder(ds []forebay.Delivery, last map[string]int) {
	v.Helper()
	if last == nil {
		last = make(map[string]int)
	}
	for _, d := range ds {
		var n int
		if _, err := fmt.Sscanf(d.ID[1:], "%d", &n); d.Group == "" || err != nil {
			continue
		}
		if n != last[d.Group]+1 {
			v.failf("%q came after number %d of group %q", d.ID, last[d.Group], d.Group)
		}
		last[d.Group] = n
	}
}

func groupRetry(v *env) {
	v.putGroup("g", "g1", "g2")
	v.putGroup("h", "h1")
	ds := v.take(1)
	v.want(ds, "g1")
	v.end(ds[0], forebay.Retry, 5*v.unit)
	v.one("h1") // other groups go on
	v.pass(4 * v.unit)
	v.none()
	v.pass(2 * v.unit)
	again := v.take(1)
	v.want(again, "g1")
	v.none()
	v.ack(again...)
	v.one("g2")
}

func groupRelease(v *env) {
	v.putGroup("g", "g1", "g2")
	for range 3 {
		ds := v.take(1)
		v.want(ds, "g1")
		v.end(ds[0], forebay.Release, 0)
	}
	ds := v.take(1)
	v.end(ds[0], forebay.Release, 5*v.unit)
	v.none()
	v.pass(6 * v.unit)
	v.want(v.take(1), "g1")
}

func groupReleaseTail(v *env) {
	v.putGroup("g", ids("g", 6)...)
	ds := v.take(4)
	v.want(ds, ids("g", 4)...)
	v.ack(ds[0])
	// Settled back to front, as a draining worker may do.
	v.end(ds[3], forebay.Release, 0)
	v.none() // g2 and g3 are still active
	v.end(ds[2], forebay.Release, 0)
	v.end(ds[1], forebay.Retry, 3*v.unit)
	v.none() // g2 waits for its retry
	v.pass(4 * v.unit)
	last := map[string]int{"g": 1}
	for last["g"] < 6 {
		more := v.take(2)
		if len(more) == 0 {
			v.failf("nothing came after g%d", last["g"])
		}
		v.groupsInOrder(more, last)
		v.ack(more...)
	}
}

func groupExpiry(v *env) {
	v.putGroup("g", ids("g", 4)...)
	ds := v.short(2)
	v.want(ds, "g1", "g2")
	v.pass(4 * v.unit)
	again := v.take(1)
	v.want(again, "g1")
	v.none()
	v.codes(v.settle(acks(ds)...), forebay.CodeLeaseLost, forebay.CodeLeaseLost)
	v.none()
	v.ack(again...)
	v.want(v.take(10), "g2", "g3", "g4")
}

func groupDead(v *env) {
	v.putGroup("g", "g1", "g2")
	ds := v.take(1)
	v.end(ds[0], forebay.Dead, 0)
	v.one("g2")
}

func groupPriority(v *env) {
	v.send(msg("g1", inGroup("g"), atLevel(9)), msg("g2", inGroup("g"), atLevel(0)), msg("g3", inGroup("g"), atLevel(5)))
	var got []forebay.Delivery
	for range 3 {
		ds := v.take(1)
		got = append(got, ds...)
		v.ack(ds...)
	}
	v.want(got, "g1", "g2", "g3")
}

func groupWakes(v *env) {
	v.putGroup("g", "g1", "g2")
	first := v.take(1)
	start := time.Now()
	wait := v.afterAWhile(func() {
		if errs, err := v.e.Settle(v.ctx, acks(first)); err != nil || errs[0] != nil {
			v.Errorf("settle: %v, %v", errs, err)
		}
	})
	ds := v.receive(engine.Receive{Queue: testQueue, Max: 1, Wait: 60 * v.unit, Lease: v.lease()})
	wait()
	v.want(ds, "g2")
	v.exactly("a wait for the next of the group", time.Since(start), v.unit)
}

// groupConcurrently has consumers who retry, release and ack as they like; each
// group must still be worked off strictly in order.
func groupConcurrently(v *env) {
	const groups, each, consumers = 8, 25, 6
	for n := 1; n <= each; n++ {
		for g := range groups {
			id := fmt.Sprintf("%c%d", 'a'+g, n)
			v.send(msg(id, inGroup(fmt.Sprint("g", g))))
		}
	}
	var mu sync.Mutex
	last := make(map[string]int) // acked so far, by group
	left := groups * each
	v.each(consumers, func(i int) error {
		for turn := 0; ; turn++ {
			mu.Lock()
			done := left == 0
			mu.Unlock()
			if done {
				return nil
			}
			ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 1 + i, Wait: v.unit, Lease: v.lease()})
			if err != nil {
				return err
			}
			if err := v.workOff(ds, turn+i, &mu, last, &left); err != nil {
				return err
			}
		}
	})
	v.counts(testQueue, 0, 0, 0, 0)
}

// workOff acks a batch in order, but gives back what comes after a turn's luck.
func (v *env) workOff(ds []forebay.Delivery, turn int, mu *sync.Mutex, last map[string]int, left *int) error {
	mu.Lock()
	ss, ended := acks(ds), make(map[string]bool)
	for j, d := range ds {
		var n int
		if _, err := fmt.Sscanf(d.ID[1:], "%d", &n); err != nil {
			return err
		}
		switch {
		case ended[d.Group]:
			ss[j].Verdict = forebay.Release
		case n != last[d.Group]+1:
			mu.Unlock()
			return fmt.Errorf("%q came after number %d of its group", d.ID, last[d.Group])
		case (turn+j)%3 == 1:
			ended[d.Group] = true
			ss[j].Verdict, ss[j].Cause = forebay.Retry, cause("x")
		default:
			last[d.Group] = n
			*left--
		}
	}
	mu.Unlock()
	if len(ss) == 0 {
		return nil
	}
	errs, err := v.e.Settle(v.ctx, ss)
	if err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func groupQueues(v *env) {
	v.putGroup("g", "g1")
	v.send(msg("r1", inQueue("r"), inGroup("g")))
	v.want(v.take(1), "g1")
	v.want(v.takeAll("r"), "r1")
}
