package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func listingMatches(v *env) {
	c := newCrowd(v)
	c.grow(60)
	c.judged(20)
	for range 4 {
		for range 60 {
			c.live()
		}
		c.judged(40)
		c.pass(time.Minute) // whatever is made afterwards is there now
		c.judged(40)
	}
}

func listingReopen(v *env) {
	c := newCrowd(v)
	c.grow(60)
	for range 3 {
		for range 60 {
			c.live()
		}
		c.reopen()
		c.held = nil
		c.judged(40)
	}
}

func listingOrder(v *env) {
	var sent []string
	for _, id := range ids("m", 8) {
		v.add(id)
		sent = append(sent, id)
		v.pass(v.unit)
	}
	ds := v.take(5) // m1 to m5
	v.pass(v.unit)
	v.endAs(ds[2], forebay.Ack)
	v.pass(v.unit)
	v.endAs(ds[0], forebay.Cancelled)
	v.pass(v.unit)
	v.endAs(ds[1], forebay.Dead)
	v.pass(v.unit)
	v.endAs(ds[3], forebay.Dead)
	v.lists(engine.JobFilter{}, "m5", "m8", "m7", "m6", "m4", "m2", "m1", "m3")
	v.lists(engine.JobFilter{States: []forebay.State{forebay.StateCompleted, forebay.StateWaiting}}, "m8", "m7", "m6", "m3")
	v.inOrder(v.list(engine.JobFilter{}, 3))
	if len(sent) != len(v.list(engine.JobFilter{Queue: testQueue}, 1)) {
		v.failf("by pages of one there are not %d", len(sent))
	}
}

func listingPages(v *env) {
	v.add(ids("m", 130)...)
	v.put(ids("message", 20)...) // which are no jobs
	v.ack(v.take(40)...)
	for _, d := range v.take(20) {
		v.endAs(d, forebay.Dead)
	}
	v.take(10)
	for _, limit := range []int{0, 1, 7, 130, engine.MaxJobs} {
		got := make(map[string]bool)
		for _, j := range v.list(engine.JobFilter{}, limit) {
			if got[j.ID] || j.Job == nil {
				v.failf("by pages of %d %q came again, or is no job", limit, j.ID)
			}
			got[j.ID] = true
		}
		if len(got) != 130 {
			v.failf("by pages of %d there are %d jobs, want 130", limit, len(got))
		}
	}
}

func listingPayload(v *env) {
	var b strings.Builder
	b.WriteString(`{"first":"1"`)
	for i := range 3 * engine.MaxTerms {
		fmt.Fprintf(&b, `,"key%d":"value%d"`, i, i)
	}
	b.WriteString(`,"last":{"of":[true,"them"]}}`)
	v.send(job("many", withBody(b.String())))
	v.add(ids("other", 30)...)
	check := func() {
		v.Helper()
		for _, term := range []engine.PayloadTerm{
			{Path: []string{"first"}, Value: "1"}, {Path: []string{fmt.Sprint("key", 3*engine.MaxTerms-1)}, Value: fmt.Sprint("value", 3*engine.MaxTerms-1)},
			{Path: []string{"last", "of"}, Value: "them"}, {Path: []string{"last", "of"}, Value: "true"},
		} {
			v.lists(engine.JobFilter{Payload: []engine.PayloadTerm{term}}, "many")
		}
		v.lists(engine.JobFilter{Payload: []engine.PayloadTerm{{Path: []string{"first"}, Value: "2"}}})
	}
	check()
	d := v.take(1)
	v.want(d, "many")
	check()
	v.ack(d...)
	check()
	v.pass(time.Minute)
	check()
}

func listingChanged(v *env) {
	v.send(job("a", withBody(`{"n":1}`)), job("b", withBody(`{"n":1}`)))
	n := func(value string) engine.JobFilter {
		return engine.JobFilter{Payload: []engine.PayloadTerm{{Path: []string{"n"}, Value: value}}}
	}
	v.pass(time.Minute)
	v.lists(n("1"), "b", "a")
	v.moved(engine.JobChange{ID: "a", Payload: []byte(`{"n":2}`)})
	v.lists(n("1"), "b")
	v.lists(n("2"), "a")
	v.moved(ofLevel("b", 0))
	v.lists(n("1"), "b")
	v.pass(time.Minute)
	v.lists(n("2"), "a")
	v.ack(v.take(10)...)
	v.lists(n("2"), "a")
	v.codes(v.removeJobs("a"), "")
	v.lists(n("2"))
	v.lists(engine.JobFilter{ID: "a"})
	v.lists(engine.JobFilter{ID: "b"}, "b")
}

func listingFinished(v *env) {
	v.send(jobsOf(ids("m", 6))...)
	v.endAll(6, forebay.Ack, forebay.Ack, forebay.Cancelled, forebay.Expired, forebay.Dead, forebay.Ack)
	v.send(job("other", inQueue("other")))
	v.ack(v.takeAll("other")...)
	check := func(completed int64) {
		v.Helper()
		got, err := able[engine.JobLister](v).Finished(v.ctx)
		if err != nil {
			v.failf("finished: %v", err)
		}
		q := got[testQueue]
		if q[forebay.StateCompleted] != completed || q[forebay.StateCancelled] != 1 || q[forebay.StateExpired] != 1 || got["other"][forebay.StateCompleted] != 1 {
			v.failf("finished are %v, want %d completed, one cancelled, one expired, one of the other queue", got, completed)
		}
	}
	check(3)
	v.codes(v.removeJobs("m1"), "")
	check(2)
	if v.h.Reopen != nil {
		v.reopen()
		check(2)
	}
}

// A job that stays where it is, is listed once, whatever others do.
func listingMoving(v *env) {
	v.send(jobsOf(ids("stay", 60), inQueue("stay"))...)
	v.add(ids("m", 60)...)
	seen := make(map[string]int)
	q := engine.JobQuery{Limit: 7}
	for n := 0; ; n++ {
		page, err := able[engine.JobLister](v).Jobs(v.ctx, q)
		if err != nil {
			v.failf("jobs: %v", err)
		}
		for _, j := range page.Jobs {
			seen[j.ID]++
		}
		v.add(fmt.Sprint("new", n))
		v.ack(v.take(2)...)
		if q.After = page.Next; page.Next == "" {
			break
		}
	}
	for _, id := range ids("stay", 60) {
		if seen[id] != 1 {
			v.failf("%q was listed %d times", id, seen[id])
		}
	}
}

func listingBounds(v *env) {
	v.add("a")
	l := able[engine.JobLister](v)
	for _, q := range []engine.JobQuery{{Limit: -1}, {Limit: engine.MaxJobs + 1}, {After: "no place"}} {
		if page, err := l.Jobs(v.ctx, q); forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("jobs %+v gave %+v, %v; want code invalid", q, page, err)
		}
	}
	for _, f := range []engine.JobFilter{
		{ID: strings.Repeat("x", 10_000)}, {Kind: strings.Repeat("*a", 2000)}, {Queue: "nobody"}, {Tags: slices.Repeat([]string{"x"}, 100)},
		{States: []forebay.State{"no state"}}, {Since: time.Now().Add(time.Hour)}, {Until: time.Unix(0, 0)},
	} {
		if got, err := l.Jobs(v.ctx, engine.JobQuery{Filter: f}); len(got.Jobs) > 0 || err != nil && forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("jobs by %+v gave %d, %v", f, len(got.Jobs), err)
		}
	}
}
