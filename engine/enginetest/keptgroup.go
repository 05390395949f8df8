package enginetest

import (
	"fmt"

	"github.com/forebayhq/forebay"
)

// Groups under kept leases: what is leased locks what comes after it, also after a
// reopening, and what comes back has its old place in the order.

func keptGroupCases() []testCase {
	return []testCase{
		{name: "kept group/locked after a reopening", invariants: []int{6}, reopens: true, needs: Keeping, run: keptGroupLocked},
		{name: "kept group/the last of a batch comes back first", invariants: []int{6}, reopens: true, needs: Keeping, run: keptGroupTail},
		{name: "kept group/the last of a batch waits for those before it", invariants: []int{6}, reopens: true, needs: Keeping, run: keptGroupBehind},
		{name: "kept group/the first of a batch comes back first", invariants: []int{6}, reopens: true, needs: Keeping, run: keptGroupHead},
		{name: "kept group/one in the middle is held", invariants: []int{6}, reopens: true, needs: Keeping, run: keptGroupMiddle},
		{name: "kept group/many, given back in any order", invariants: []int{6}, reopens: true, needs: Keeping, run: keptGroupMany},
	}
}

func keptGroupLocked(v *env) {
	v.putGroup("g", ids("g", 4)...)
	v.putGroup("h", "h1")
	ds := v.keep(2, 10*v.unit)
	v.want(ds, "g1", "g2")
	for range 2 {
		v.reopen()
		v.want(v.keep(10, v.unit), "h1")
		v.pass(2 * v.unit)
	}
	v.putGroup("g", "g5")
	v.ack(ds[0])
	v.want(v.keep(10, v.unit), "h1")
	v.ack(ds[1])
	v.want(v.take(10), "g3", "g4", "g5")
}

// keptGroupTail gives back g3 before g1 and g2, which nobody has asked for since.
func keptGroupTail(v *env) {
	v.putGroup("g", ids("g", 5)...)
	ds := v.keep(3, v.lease())
	v.want(ds, "g1", "g2", "g3")
	v.end(ds[0], forebay.Release, 0)
	v.reopen()
	v.codes(v.extend(0, ds[2].Receipt), "")
	first := v.take(10)
	v.want(first, "g1") // g2 is held
	v.end(ds[1], forebay.Retry, 0)
	v.none()
	v.ack(first...)
	v.want(v.take(10), "g2", "g3", "g4", "g5")
}

// keptGroupBehind gives back g3 when all before it wait, which nobody has asked for since.
func keptGroupBehind(v *env) {
	for name, back := range map[string]func(d forebay.Delivery){
		"a": func(d forebay.Delivery) { v.end(d, forebay.Release, 0) },
		"b": func(d forebay.Delivery) { v.end(d, forebay.Retry, 0) },
		"c": func(d forebay.Delivery) { v.codes(v.extend(0, d.Receipt), "") },
	} {
		all := ids(name, 5)
		v.putGroup(name, all...)
		ds := v.keep(3, v.lease())
		v.end(ds[0], forebay.Release, 0)
		v.end(ds[1], forebay.Retry, 0)
		v.reopen()
		back(ds[2])
		got := v.take(10)
		v.want(got, all...)
		v.ack(got...)
	}
}

func keptGroupHead(v *env) {
	v.putGroup("g", ids("g", 4)...)
	ds := v.keep(3, v.lease())
	v.want(ds, "g1", "g2", "g3")
	v.reopen()
	v.codes(v.extend(0, ds[0].Receipt), "")
	again := v.keep(10, v.lease())
	v.want(again, "g1")
	v.reopen()
	v.none()
	v.ack(again[0], ds[1])
	v.none()
	v.end(ds[2], forebay.Release, 0)
	v.want(v.take(10), "g3", "g4")
}

func keptGroupMiddle(v *env) {
	v.putGroup("g", ids("g", 5)...)
	v.keep(1, v.unit)
	v.pass(2 * v.unit)
	ds := v.take(1) // g1, not kept
	v.want(ds, "g1")
	v.end(ds[0], forebay.Release, 0)
	ds = v.keep(3, v.lease())
	v.want(ds, "g1", "g2", "g3")
	v.end(ds[0], forebay.Retry, 0)
	v.codes(v.extend(0, ds[2].Receipt), "")
	v.reopen() // g2 is held, g1 and g3 wait
	again := v.take(10)
	v.want(again, "g1")
	v.reopen()
	again = v.take(10)
	v.want(again, "g1")
	v.ack(again...)
	v.none()
	v.ack(ds[1])
	v.want(v.take(10), "g3", "g4", "g5")
}

func keptGroupMany(v *env) {
	const groups, each = 5, 12
	for n := 1; n <= each; n++ {
		for g := range groups {
			v.putGroup(fmt.Sprint("g", g), fmt.Sprintf("%c%d", 'a'+g, n))
		}
	}
	last := make(map[string]int)
	for round := 0; ; round++ {
		ds := v.keep(1+round%9, v.lease())
		v.reopen()
		if len(ds) == 0 {
			break
		}
		taken := make(map[string]int)
		for g, n := range last {
			taken[g] = n
		}
		v.groupsInOrder(ds, taken)
		// The first of each group is acked, the rest given back, last first or first first.
		seen := make(map[string]bool)
		var rest []forebay.Delivery
		for _, d := range ds {
			if seen[d.Group] {
				rest = append(rest, d)
				continue
			}
			seen[d.Group] = true
			last[d.Group]++
			v.ack(d)
		}
		for i := range rest {
			d := rest[i]
			if round%2 == 0 {
				d = rest[len(rest)-1-i]
			}
			if round%3 == 0 {
				v.end(d, forebay.Release, 0)
			} else {
				v.codes(v.extend(0, d.Receipt), "")
			}
		}
	}
	v.counts(testQueue, 0, 0, 0, 0)
	for g := range groups {
		if n := last[fmt.Sprint("g", g)]; n != each {
			v.failf("group %d ended after %d", g, n)
		}
	}
}
