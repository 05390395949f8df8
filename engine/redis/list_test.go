package redis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func (p *pair) listed(f engine.JobFilter) []string {
	p.t.Helper()
	f.Queue = "q"
	page, err := p.e.Jobs(p.t.Context(), engine.JobQuery{Filter: f, Limit: 500})
	if err != nil {
		p.t.Fatal(err)
	}
	var all []string
	for _, j := range page.Jobs {
		all = append(all, j.ID+" "+string(j.State))
	}
	return all
}

func (p *pair) keys(pattern string) []string {
	p.t.Helper()
	all, err := client(p.t, p.s).Keys(p.t.Context(), pattern).Result()
	if err != nil {
		p.t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// Jobs of Node clients are listed among ours; what Node workers finish and remove leaves
// the list with all that is known of it, and what is obliterated leaves nothing.
func TestListOfAMixedQueue(t *testing.T) {
	versions(t, func(p *pair) {
		p.send(jobOf("a", nil))
		first := p.add("work", args{"n": 2}, args{})
		p.send(jobOf("b", func(m *forebay.Message) { m.NotBefore = time.Now().Add(time.Hour) }))
		second := p.add("work", args{"n": 3}, args{"priority": 3, "delay": 3_600_000})
		if got := p.listed(engine.JobFilter{}); fmt.Sprint(got) != fmt.Sprintf("[q:%s delayed b delayed q:%s waiting a waiting]", second, first) {
			p.t.Fatalf("listed %v", got)
		}
		terms := engine.JobFilter{Payload: []engine.PayloadTerm{{Path: []string{"n"}, Value: "3"}}}
		if got := p.listed(terms); len(got) != 1 || got[0] != "q:"+second+" delayed" {
			p.t.Fatalf("found %v by payload", got)
		}
		var many []forebay.Message
		for i := range 300 {
			many = append(many, jobOf(fmt.Sprint("m", i), func(m *forebay.Message) {
				m.Job.Keep.Finished.None, m.DedupKey, m.Job.Dedup, m.DedupWindow = true, fmt.Sprint("key", i), forebay.DedupUntilFinished, time.Second
			}))
		}
		p.send(many...)
		p.n.do("events", args{"queue": "q"})
		p.n.do("work", args{"queue": "q", "opts": args{"concurrency": 20}})
		done := 0
		p.n.event("302 jobs are completed", func(e map[string]any) bool {
			if e["event"] == "completed" {
				done++
			}
			return done == 302
		})
		if err := p.e.Sweep(p.t.Context(), "q"); err != nil {
			p.t.Fatal(err)
		}
		c := client(p.t, p.s)
		if n, err := c.ZCard(p.t.Context(), "bull:q:fb:j").Result(); err != nil || n > 100 {
			p.t.Errorf("%d are listed as not finished, %v", n, err)
		}
		for _, key := range p.keys("bull::fb:[ij]:*m*") {
			if ttl, err := c.PTTL(p.t.Context(), key).Result(); err != nil || ttl == -1 {
				p.t.Fatalf("the record %s of a job that has gone stays for ever", key)
			}
		}
		if got := p.listed(engine.JobFilter{}); fmt.Sprint(got) != fmt.Sprintf("[q:%s delayed b delayed a completed q:%s completed]", second, first) &&
			fmt.Sprint(got) != fmt.Sprintf("[q:%s delayed b delayed q:%s completed a completed]", second, first) {
			p.t.Errorf("listed %v", got)
		}
		p.send(jobOf("g", func(m *forebay.Message) { m.Group, m.NotBefore = "g", time.Now().Add(time.Hour) }))
		p.n.do("obliterate", args{"queue": "q"})
		if err := p.e.Sweep(p.t.Context(), "q"); err != nil {
			p.t.Fatal(err)
		}
		for _, key := range p.keys("*") {
			if strings.HasPrefix(key, "bull:q:") && key != "bull:q:marker" && key != "bull:q:events" && key != "bull:q:meta" || strings.Contains(key, ":fb:i:") && c.PTTL(p.t.Context(), key).Val() == -1 {
				p.t.Errorf("%s is left of an obliterated queue", key)
			}
		}
	})
}
