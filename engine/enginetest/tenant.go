package enginetest

import (
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func tenantCases() []testCase {
	return []testCase{
		{name: "tenant/one with much waiting does not hold up another", needs: Ledger, run: tenantTurns},
		{name: "tenant/in one batch too", needs: Ledger, run: tenantBatch},
		{name: "tenant/one that comes late gets its turn", needs: Ledger, run: tenantLate},
		{name: "tenant/the empty one is one of them", needs: Ledger, run: tenantEmpty},
		{name: "tenant/priority and age decide within one", invariants: []int{6}, needs: Ledger, run: tenantPriority},
		{name: "tenant/those without work take no turns", needs: Ledger, run: tenantIdle},
		{name: "tenant/one held by its limit lets others go", invariants: []int{7}, needs: Ledger, run: tenantLimit},
		{name: "tenant/what is delayed or retried keeps its tenant", needs: Ledger, run: tenantDelayed},
		{name: "tenant/outlives a restart", needs: Ledger, reopens: true, run: tenantReopen},
	}
}

func ofTenant(name string) func(*forebay.Message) {
	return opts(func(o *forebay.JobOptions) { o.Tenant = name })
}

// turns takes n jobs, by calls for batch each, and gives their tenants.
func (v *env) turns(n, batch int) []string {
	v.Helper()
	var got []string
	for len(got) < n {
		ds := v.take(min(batch, n-len(got)))
		if len(ds) == 0 {
			v.failf("%d of %d came", len(got), n)
		}
		for _, d := range ds {
			got = append(got, d.Job.Tenant)
		}
		v.ack(ds...)
	}
	return got
}

// fair wants no tenant with work passed over for more hand-outs than there are
// tenants with work. left is what each has waiting.
func (v *env) fair(got []string, left map[string]int) {
	v.Helper()
	since, most := make(map[string]int), make(map[string]int)
	for i, name := range got {
		working := 0
		for _, n := range left {
			if n > 0 {
				working++
			}
		}
		for other, n := range left {
			since[other]++
			most[other] = max(most[other], working)
			if n > 0 && other != name && since[other] > most[other] {
				v.failf("after %d hand-outs (%v) tenant %q has waited for %d, with %d tenants", i+1, got[max(0, i-9):i+1], other, since[other], most[other])
			}
		}
		left[name]--
		since[name], most[name] = 0, 0
	}
}

func tenantTurns(v *env) {
	v.send(jobsOf(ids("big", 300), ofTenant("big"))...)
	v.send(jobsOf(ids("a", 5), ofTenant("a"))...)
	v.send(jobsOf(ids("b", 5), ofTenant("b"))...)
	v.fair(v.turns(40, 1), map[string]int{"big": 300, "a": 5, "b": 5})
}

func tenantBatch(v *env) {
	v.send(jobsOf(ids("big", 300), ofTenant("big"))...)
	for i := range 9 {
		v.send(jobsOf(ids(fmt.Sprint("t", i, "-"), 3), ofTenant(fmt.Sprint("t", i)))...)
	}
	left := map[string]int{"big": 300}
	for i := range 9 {
		left[fmt.Sprint("t", i)] = 3
	}
	v.fair(v.turns(60, 20), left)
}

func tenantLate(v *env) {
	v.send(jobsOf(ids("big", 200), ofTenant("big"))...)
	v.turns(50, 10)
	for round := range 5 {
		id := fmt.Sprint("late", round)
		v.stores(job(id, ofTenant(id)))
		// Two tenants have work, so it comes within two.
		v.fair(v.turns(3, 1), map[string]int{"big": 100, id: 1})
	}
}

func tenantEmpty(v *env) {
	v.send(jobsOf(ids("big", 100), ofTenant("big"))...)
	v.add(ids("none", 5)...)
	v.put(ids("message", 5)...) // a message has no tenant either
	got := make([]string, 0, 25)
	for range 25 {
		d := v.take(1)
		if len(d) != 1 {
			v.failf("%d of 25 came", len(got))
		}
		name := ""
		if d[0].Job != nil {
			name = d[0].Job.Tenant
		}
		got = append(got, name)
		v.ack(d...)
	}
	v.fair(got, map[string]int{"big": 100, "": 10})
}

func tenantPriority(v *env) {
	v.send(job("a1", ofTenant("a")), job("a2", ofTenant("a"), atLevel(0)), job("a3", ofTenant("a")), job("a4", ofTenant("a"), atLevel(9)))
	v.send(job("b1", ofTenant("b"), atLevel(9)), job("b2", ofTenant("b"), atLevel(9)))
	order := make(map[string][]string)
	for _, d := range v.takeAll(testQueue) {
		order[d.Job.Tenant] = append(order[d.Job.Tenant], d.ID)
	}
	if got := fmt.Sprint(order); got != "map[a:[a2 a1 a3 a4] b:[b1 b2]]" {
		v.failf("within each tenant they came as %s", got)
	}
}

func tenantIdle(v *env) {
	for i := range 50 { // they have come and gone
		v.stores(job(fmt.Sprint("gone", i), ofTenant(fmt.Sprint("gone", i))))
	}
	v.turns(50, 50)
	v.send(jobsOf(ids("a", 10), ofTenant("a"))...)
	v.send(jobsOf(ids("b", 10), ofTenant("b"))...)
	v.fair(v.turns(20, 1), map[string]int{"a": 10, "b": 10})
	v.none()
}

func tenantLimit(v *env) {
	v.limit(engine.QueueLimits{KeyActive: 1})
	v.send(jobsOf(ids("a", 50), ofTenant("a"), withLimit("a"))...)
	v.send(jobsOf(ids("b", 10), ofTenant("b"))...)
	v.wantSet(v.takeAll(testQueue), append(ids("b", 10), "a1")...)
}

func tenantDelayed(v *env) {
	v.send(jobsOf(ids("big", 100), ofTenant("big"))...)
	v.send(jobsOf(ids("late", 2), ofTenant("late"), notBefore(time.Now().Add(5*v.unit)))...)
	v.stores(job("again", ofTenant("again")))
	for _, d := range v.take(2) {
		v.end(d, forebay.Retry, 5*v.unit)
	}
	v.turns(10, 1)
	v.pass(6 * v.unit)
	v.fair(v.turns(12, 1), map[string]int{"big": 90, "late": 2, "again": 1})
}

func tenantReopen(v *env) {
	v.send(jobsOf(ids("big", 100), ofTenant("big"))...)
	v.send(jobsOf(ids("a", 5), ofTenant("a"))...)
	v.turns(3, 1)
	for range 2 {
		v.reopen()
		got := v.turns(3, 1)
		if s := fmt.Sprint(got); s != "[big a big]" && s != "[a big a]" {
			v.failf("after reopening the turns are %v", got)
		}
	}
}
