package enginetest

import (
	"fmt"
	"slices"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func priorityCases() []testCase {
	return []testCase{
		{name: "priority/lower level first, then age", invariants: []int{6}, needs: Priorities, run: priorityOrder},
		{name: "priority/waiting outweighs it in the end", invariants: []int{6}, needs: Priorities, run: priorityAgeing},
		{name: "priority/a level is worth Ageing, no more", invariants: []int{6}, needs: Priorities, run: priorityWorth},
		{name: "priority/kept across a retry", invariants: []int{6}, needs: Priorities, run: priorityRetry},
	}
}

func priorityOrder(v *env) {
	var want []string
	for level := 9; level >= 0; level-- {
		v.send(msg(fmt.Sprintf("l%d", level), atLevel(level)))
	}
	v.send(msg("unset"))
	for level := range 10 {
		want = append(want, fmt.Sprintf("l%d", level))
		if level == 5 {
			want = append(want, "unset") // counts as 5, and is younger
		}
	}
	var got []forebay.Delivery
	for range want {
		got = append(got, v.take(1)...)
	}
	v.want(got, want...)
}

func priorityAgeing(v *env) {
	if v.h.Pass != nil {
		return // Ageing is counted in half minutes of real time
	}
	v.send(msg("patient", atLevel(9)))
	for n := range 12 {
		v.send(msg(fmt.Sprint("urgent", n), atLevel(0)))
		v.pass(engine.Ageing)
	}
	var got []string
	for range 13 {
		got = append(got, idsOf(v.take(1))...)
	}
	// urgent0 to urgent8 are older than the patient one less nine levels; with
	// urgent9 it is a tie.
	if place := slices.Index(got, "patient"); place != 9 && place != 10 {
		v.failf("the message of level 9 came at place %d: %v", place, got)
	}
}

func priorityWorth(v *env) {
	if v.h.Pass != nil {
		return
	}
	v.send(msg("old", atLevel(3)))
	v.pass(engine.Ageing - v.unit)
	v.send(msg("new", atLevel(2)))
	v.want(v.take(1), "new")
	v.pass(2 * v.unit)
	v.send(msg("newer", atLevel(2)))
	v.want(v.take(1), "old")
	v.one("newer")
}

func priorityRetry(v *env) {
	v.send(msg("low", atLevel(9)), msg("high", atLevel(0)))
	ds := v.take(1)
	v.want(ds, "high")
	v.end(ds[0], forebay.Retry, 0)
	v.want(v.take(1), "high")
	v.one("low")
}
