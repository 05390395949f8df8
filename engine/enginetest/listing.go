package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// What engine.JobFilter.Match says of each job is what a listing must give. The
// jobs and the filters are random; the seed is told with every failure, and
// ENGINETEST_SEED chooses it.

func listingCases() []testCase {
	return []testCase{
		{name: "listing/finds what Match means", needs: Listing, run: listingMatches},
		{name: "listing/also after a restart", needs: Listing, reopens: true, run: listingReopen},
		{name: "listing/active, waiting, dead, finished, each newest first", needs: Listing, run: listingOrder},
		{name: "listing/pages of every size", needs: Listing, run: listingPages},
		{name: "listing/values of payloads, the last of many too", needs: Listing, run: listingPayload},
		{name: "listing/what is changed is found by what it is now", needs: Listing, run: listingChanged},
		{name: "listing/finished ones are counted", needs: Listing, run: listingFinished},
		{name: "listing/pages while jobs come and go", needs: Listing, run: listingMoving},
		{name: "listing/bounds", needs: Listing, run: listingBounds},
	}
}

// list gives all jobs that a filter means, by pages of a limit.
func (v *env) list(f engine.JobFilter, limit int) []forebay.Job {
	v.Helper()
	var all []forebay.Job
	q := engine.JobQuery{Filter: f, Limit: limit}
	for turns := 0; ; turns++ {
		page, err := able[engine.JobLister](v).Jobs(v.ctx, q)
		if err != nil {
			v.failf("jobs %+v: %v", q, err)
		}
		if limit > 0 && len(page.Jobs) > limit || turns > 100_000 {
			v.failf("a page of at most %d has %d jobs, after %d pages", limit, len(page.Jobs), turns)
		}
		all = append(all, page.Jobs...)
		if page.Next == "" {
			return all
		}
		q.After = page.Next
	}
}

// lists wants these jobs, in this order.
func (v *env) lists(f engine.JobFilter, ids ...string) {
	v.Helper()
	var got []string
	for _, j := range v.list(f, 0) {
		got = append(got, j.ID)
	}
	if !slices.Equal(got, ids) {
		v.failf("jobs %+v are %v, want %v", f, got, ids)
	}
}

// crowd is a random crowd of jobs.
type crowd struct {
	*env
	rng  *rand.Rand
	ids  []string
	held []forebay.Delivery
}

const crowdQueues = 3

func newCrowd(v *env) *crowd {
	seed := setting(v, "ENGINETEST_SEED", uint64(rand.Uint32()))
	v.about += fmt.Sprintf(", ENGINETEST_SEED=%d", seed)
	return &crowd{env: v, rng: rand.New(rand.NewPCG(seed, 3))}
}

func (c *crowd) pick(of ...string) string { return of[c.rng.IntN(len(of))] }

func (c *crowd) payload() string {
	return c.pick(
		fmt.Sprintf(`{"user":{"id":%d,"name":"Zoë %d"},"items":[{"sku":"a%d"},{"sku":"b"}]}`, c.rng.IntN(5), c.rng.IntN(3), c.rng.IntN(4)),
		fmt.Sprintf(`{"n":%d.50,"ok":%v,"none":null,"list":[1,[2,{"deep":"x%d"}]]}`, c.rng.IntN(4), c.rng.IntN(2) == 0, c.rng.IntN(3)),
		fmt.Sprintf(`{"user":"%d","":"empty","a.b":"dot"}`, c.rng.IntN(3)), `"text"`, `17`, `[]`, `{}`, `no json`, ``,
	)
}

// grow adds n jobs.
func (c *crowd) grow(n int) {
	var msgs []forebay.Message
	for range n {
		m := job(fmt.Sprint("job", len(c.ids)), inQueue(fmt.Sprint("q", c.rng.IntN(crowdQueues))), withBody(c.payload()))
		m.Kind = c.pick("email.send", "email.check", "image", "report.daily.eu", "größe")
		m.Group = c.pick("", "", "", "g1", "g2")
		*m.Job = forebay.JobOptions{Tenant: c.pick("", "t1", "t2"), Owner: c.pick("", "o1", "o2"), Parent: c.pick("", "", "p1", "job0")}
		for _, tag := range []string{"red", "blue", "größe"} {
			if c.rng.IntN(3) == 0 {
				m.Job.Tags = append(m.Job.Tags, tag)
			}
		}
		if c.rng.IntN(6) == 0 {
			m.NotBefore = time.Now().Add(time.Duration(1+c.rng.IntN(100)) * c.unit)
		}
		c.ids, msgs = append(c.ids, m.ID), append(msgs, m)
	}
	c.send(msgs...)
}

// live lets a random thing happen to the crowd.
func (c *crowd) live() {
	id := c.ids[c.rng.IntN(len(c.ids))]
	switch c.rng.IntN(9) {
	case 0:
		c.grow(1 + c.rng.IntN(12))
	case 1, 2:
		c.held = append(c.held, c.receive(engine.Receive{
			Queue: fmt.Sprint("q", c.rng.IntN(crowdQueues)), Max: 1 + c.rng.IntN(8), Lease: time.Hour,
		})...)
	case 3, 4, 5:
		c.endSome()
	case 6:
		c.cancel(c.pick("", "stop it", "no MORE"), id)
	case 7:
		c.change(engine.JobChange{ID: id, Payload: []byte(c.payload())}, engine.JobChange{ID: c.ids[c.rng.IntN(len(c.ids))], Due: new(time.Time)})
	case 8:
		if c.rng.IntN(4) == 0 {
			c.removeJobs(id)
		}
		c.pass(c.unit)
	}
}

func (c *crowd) endSome() {
	for range min(len(c.held), 1+c.rng.IntN(6)) {
		i := c.rng.IntN(len(c.held))
		s := forebay.Settlement{Receipt: c.held[i].Receipt, Verdict: forebay.Ack + forebay.Verdict(c.rng.IntN(6))}
		if s.Verdict != forebay.Ack && s.Verdict != forebay.Release {
			s.Cause = forebay.Cause{Code: c.pick("timeout", "handler", "x"), Message: c.pick("Timeout of the Größe", "it broke", "connection REFUSED")}
		}
		if s.Verdict == forebay.Retry && c.rng.IntN(2) == 0 {
			s.After = 50 * c.unit
		}
		c.codes(c.settle(s), "")
		c.held = slices.Delete(c.held, i, i+1)
	}
}

// known are all jobs of the crowd, as the ledger tells them one by one.
func (c *crowd) known() map[string]forebay.Job {
	c.Helper()
	jobs := make(map[string]forebay.Job)
	for _, id := range c.ids {
		j, err := able[engine.Jobs](c.env).Job(c.ctx, id)
		switch forebay.CodeOf(err) {
		case "":
			jobs[id] = j
		case forebay.CodeNotFound:
		default:
			c.failf("job %q: %v", id, err)
		}
	}
	return jobs
}

// filter makes a filter after a job that there is, so that it is not often empty.
func (c *crowd) filter(jobs map[string]forebay.Job) engine.JobFilter {
	var f engine.JobFilter
	j := jobs[c.ids[c.rng.IntN(len(c.ids))]]
	if j.Job == nil {
		return f
	}
	for range 1 + c.rng.IntN(3) {
		switch c.rng.IntN(14) {
		case 0, 1:
			f.States = []forebay.State{j.State, forebay.States[c.rng.IntN(len(forebay.States))]}
		case 2:
			f.Queue = j.Queue
		case 3:
			f.ID = j.ID
		case 4:
			f.Kind = c.pick(j.Kind, "email.*", "*a*", "*.eu", "größe", "r*.*.e*", "*", "none")
		case 5:
			f.Group = j.Group
		case 6:
			f.Tenant, f.Owner = j.Job.Tenant, c.pick("", j.Job.Owner)
		case 7:
			f.Parent = j.Job.Parent
		case 8:
			f.Tags = j.Job.Tags
		case 9:
			f.Code = c.pick(j.Cause.Code, "timeout", "handler", "cancelled")
		case 10:
			f.Error = c.pick("timeout", "GRÖßE", "größe", "Refused", "stop", "o", "more")
		case 11:
			f.Since = j.SentAt.Add(time.Duration(c.rng.IntN(3)-1) * c.unit)
		case 12:
			f.Until = j.SentAt.Add(time.Duration(c.rng.IntN(3)) * c.unit)
		case 13:
			f.Payload = c.terms()
		}
	}
	return f
}

func (c *crowd) terms() []engine.PayloadTerm {
	all := []engine.PayloadTerm{
		{Path: []string{"user", "id"}, Value: fmt.Sprint(c.rng.IntN(6))}, {Path: []string{"user", "name"}, Value: "Zoë 1"},
		{Path: []string{"items", "sku"}, Value: fmt.Sprint("a", c.rng.IntN(4))}, {Path: []string{"items", "sku"}, Value: "b"},
		{Path: []string{"n"}, Value: "1.50"}, {Path: []string{"n"}, Value: "1.5"}, {Path: []string{"ok"}, Value: "true"},
		{Path: []string{"none"}, Value: "null"}, {Path: []string{"list"}, Value: "2"}, {Path: []string{"list", "deep"}, Value: "x1"},
		{Path: []string{"user"}, Value: "1"}, {Path: []string{""}, Value: "empty"}, {Path: []string{"a.b"}, Value: "dot"},
		{Value: "text"}, {Value: "17"}, {Path: []string{"user", "id", "no"}, Value: "1"},
	}
	c.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+c.rng.IntN(2)]
}

// judged holds n random filters against Match.
func (c *crowd) judged(n int) {
	c.Helper()
	jobs := c.known()
	for range n {
		f := c.filter(jobs)
		got := c.list(f, 4+c.rng.IntN(40)) // smaller pages have a case of their own
		c.inOrder(got)
		seen := make(map[string]bool)
		for _, j := range got {
			if seen[j.ID] || !f.Match(&j) {
				c.failf("filter %+v gave %q (again: %v), which is %+v", f, j.ID, seen[j.ID], j)
			}
			seen[j.ID] = true
			c.sameJob(j, jobs[j.ID])
		}
		for id, j := range jobs {
			if f.Match(&j) && !seen[id] {
				c.failf("filter %+v did not give %q, which is %+v with payload %s", f, id, j, j.Payload)
			}
		}
	}
}

// sectionOf is where a job stands in a listing.
func sectionOf(s forebay.State) int {
	switch s {
	case forebay.StateActive:
		return 0
	case forebay.StateWaiting, forebay.StateDelayed:
		return 1
	case forebay.StateDead:
		return 2
	}
	return 3
}

// inOrder wants a listing in the order that all have.
func (v *env) inOrder(jobs []forebay.Job) {
	v.Helper()
	for i := 1; i < len(jobs); i++ {
		a, b := jobs[i-1], jobs[i]
		section := sectionOf(a.State)
		wrong := section > sectionOf(b.State)
		if section == sectionOf(b.State) {
			wrong = section == 1 && a.SentAt.Before(b.SentAt) || section == 2 && a.DeadSeq < b.DeadSeq ||
				section == 3 && a.FinishedAt.Before(b.FinishedAt)
		}
		if wrong {
			v.failf("%q (%s, sent %v, finished %v) is listed before %q (%s, sent %v, finished %v)",
				a.ID, a.State, a.SentAt, a.FinishedAt, b.ID, b.State, b.SentAt, b.FinishedAt)
		}
	}
}
