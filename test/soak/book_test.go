//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// told is a book, and a clock that goes on by a millisecond with each step.
type told struct {
	*book
	t  *testing.T
	at time.Time
}

func newTold(t *testing.T) *told {
	return &told{newBook(), t, time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}
}

func (x *told) now() time.Time {
	x.at = x.at.Add(time.Millisecond)
	return x.at
}

func (x *told) add(id, group string, p plan) *job {
	j := &job{id: id, queue: "work", plan: p, attempts: 2}
	x.expect(j, group, x.now())
	x.ack(id)
	return j
}

func (x *told) run(id string, attempt int, v verdict) *run {
	r := x.begin(id, "work", plan{}, attempt, x.now())
	if v != open {
		x.end(id, r, v, x.now())
	}
	return r
}

func (x *told) ends(id, state string, by *run) {
	e := &ended{JobID: id, State: state}
	if by != nil {
		e.Result = json.RawMessage(fmt.Sprintf(`{"run":%d}`, by.n))
	}
	x.judgeEnd(id, e, x.now())
}

// broken are things that can happen, and the rule that each breaks; empty: none.
var broken = []struct {
	name string
	rule string
	do   func(x *told)
}{
	{"all is well", "", func(x *told) {
		x.add("a", "", plan{Fail: 1})
		x.run("a", 1, failed)
		x.ends("a", "completed", x.run("a", 2, done))
	}},
	{"a crash costs no attempt", "", func(x *told) {
		x.add("a", "", plan{})
		x.run("a", 1, gone)
		x.ends("a", "completed", x.run("a", 1, done))
	}},
	{"a verdict that was not stored comes again", "", func(x *told) {
		x.add("a", "", plan{})
		x.run("a", 1, done)
		x.ends("a", "completed", x.run("a", 1, done))
	}},
	{"a job that nobody knows", "lost", func(x *told) { x.add("a", "", plan{}); x.judgeEnd("a", nil, x.now()) }},
	{"a job that never ends", "stuck", func(x *told) { x.add("a", "", plan{}); x.ends("a", "waiting", nil) }},
	{"a job that nobody has worked", "fence", func(x *told) { x.add("a", "", plan{}); x.ends("a", "completed", nil) }},
	{"ended by a lease that was over", "fence", func(x *told) {
		x.add("a", "", plan{})
		first := x.run("a", 1, open)
		x.run("a", 1, open)
		x.end("a", first, done, x.now())
		x.ends("a", "completed", first)
	}},
	{"the clock took its lease", "", func(x *told) {
		x.add("a", "", plan{})
		first := x.run("a", 1, open)
		x.jumped(x.now())
		x.run("a", 1, done)
		x.ends("a", "completed", first)
	}},
	{"a stale settle that counts", "fence", func(x *told) {
		x.add("a", "", plan{})
		r := x.run("a", 1, open)
		x.run("a", 1, open)
		x.stale("a", r, x.superseded("a", r), true, x.now())
	}},
	{"a stale settle that is refused", "", func(x *told) {
		x.add("a", "", plan{})
		r := x.run("a", 1, open)
		x.run("a", 1, open)
		x.stale("a", r, x.superseded("a", r), false, x.now())
	}},
	{"an attempt for a crash", "attempts", func(x *told) { x.add("a", "", plan{}); x.run("a", 1, gone); x.run("a", 2, done) }},
	{"dead too early", "attempts", func(x *told) { x.add("a", "", plan{Fail: 9}); x.run("a", 1, failed); x.ends("a", "dead", nil) }},
	{"dead in time", "", func(x *told) {
		x.add("a", "", plan{Fail: 9})
		x.run("a", 1, failed)
		x.run("a", 2, failed)
		x.ends("a", "dead", nil)
	}},
	{"dead for nothing", "end", func(x *told) { x.add("a", "", plan{}); x.run("a", 1, done); x.ends("a", "dead", nil) }},
	{"completed though refused", "end", func(x *told) { x.add("a", "", plan{Perm: true}); x.ends("a", "completed", x.run("a", 1, refused)) }},
	{"again after its end", "ends once", func(x *told) { x.add("a", "", plan{}); x.reset(); x.run("a", 1, done) }},
	{"cancelled and run", "cancel", func(x *told) { x.add("a", "", plan{}); x.cancel("a", "cancelled"); x.run("a", 1, done) }},
	{"cancelled and completed", "cancel", func(x *told) {
		x.add("a", "", plan{})
		r := x.run("a", 1, done)
		x.cancel("a", "cancelled")
		x.ends("a", "completed", r)
	}},
	{"too early", "delay", func(x *told) { x.add("a", "", plan{}).delay = time.Second; x.run("a", 1, done) }},
	{"too early on a clock that was moved", "", func(x *told) {
		x.jumped(x.now())
		x.add("a", "", plan{}).delay = time.Second
		x.run("a", 1, done)
		if x.counts.EarlyAfterJump != 1 {
			x.t.Error("it is not counted")
		}
	}},
	{"too early, long after a clock was moved", "delay", func(x *told) {
		x.jumped(x.now().Add(-time.Minute))
		x.add("a", "", plan{}).delay = time.Second
		x.run("a", 1, done)
	}},
	{"in time", "", func(x *told) {
		x.add("a", "", plan{}).delay = time.Second
		x.at = x.at.Add(time.Second)
		x.run("a", 1, done)
	}},
	{"a group in order", "", func(x *told) {
		x.add("a", "g", plan{})
		x.add("b", "g", plan{})
		x.add("c", "h", plan{})
		x.run("c", 1, open)
		x.run("a", 1, failed)
		x.run("a", 2, done)
		x.run("b", 1, gone)
		x.run("b", 1, done)
	}},
	{"a group that overtakes a retry", "order", func(x *told) {
		x.add("a", "g", plan{Fail: 1})
		x.add("b", "g", plan{})
		x.run("a", 1, failed)
		x.run("b", 1, done)
	}},
	{"a group that goes back", "order", func(x *told) {
		x.add("a", "g", plan{})
		x.add("b", "g", plan{})
		x.run("a", 1, done)
		x.run("b", 1, done)
		x.run("a", 1, done)
	}},
	{"one key, two jobs", "dedup", func(x *told) { x.first("k", "a", x.now()); x.first("k", "b", x.now()) }},
	{"one key, one job", "", func(x *told) { x.first("k", "a", x.now()); x.first("k", "a", x.now()) }},
	{"a duplicate that ran", "dedup", func(x *told) { x.add("a", "", plan{}); x.run("a", 1, done); x.drop("a", x.now()) }},
	{"a schedule with a gap", "schedule", func(x *told) { x.ticks(0, 2, 6) }},
	{"a schedule without one", "", func(x *told) { x.ticks(0, 2, 4) }},
}

// Each rule finds what breaks it, and finds nothing in what looks like it and is allowed.
func TestRules(t *testing.T) {
	for _, c := range broken {
		t.Run(c.name, func(t *testing.T) {
			x := newTold(t)
			c.do(x)
			x.found(c.rule)
		})
	}
}

func (x *told) ticks(seconds ...int) {
	for _, s := range seconds {
		x.run("schedule:s:"+x.at.Truncate(time.Hour).Add(time.Duration(s)*time.Second).Format("20060102T150405Z"), 1, done)
	}
	x.judgeSchedule("s", 2*time.Second, x.now())
}

// found checks that exactly one rule was broken, or none.
func (x *told) found(rule string) {
	x.t.Helper()
	var all []string
	for _, f := range x.findings {
		all = append(all, f.Rule+": "+f.Text)
	}
	if rule == "" && len(all) > 0 || rule != "" && (len(all) != 1 || !strings.HasPrefix(all[0], rule+":")) {
		x.t.Errorf("found %q, want %q once", all, rule)
	}
}

// Limits are counted at the handler: how many run at once, of all and of a key, and how many start.
func TestLimitsAreJudged(t *testing.T) {
	type call struct {
		key      string
		from, to int // milliseconds
		verdict  verdict
	}
	steady := func(n, every int) (all []call) {
		for i := range n {
			all = append(all, call{fmt.Sprint("k", i%5), i * every, i*every + 20, done})
		}
		return all
	}
	for _, c := range []struct {
		name, rule string
		calls      []call
	}{
		{"two of a key", "", []call{{"a", 0, 50, done}, {"a", 10, 60, failed}, {"a", 60, 90, done}}},
		{"three of a key", "limit", []call{{"a", 0, 50, done}, {"a", 10, 60, failed}, {"a", 20, 90, done}}},
		{"the third was cut off", "", []call{{"a", 0, 50, done}, {"a", 10, 60, gone}, {"a", 20, 90, done}}},
		{"seven at once", "limit", []call{{"a", 0, 50, done}, {"a", 0, 50, done}, {"b", 0, 50, done}, {"b", 0, 50, done}, {"c", 0, 50, done}, {"c", 0, 50, done}, {"d", 0, 50, done}}},
		{"twelve a second", "", steady(200, 1000/12+1)},
		{"twenty a second", "limit", steady(300, 50)},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTold(t)
			for i, one := range c.calls {
				id := fmt.Sprint("j", i)
				j := x.add(id, "", plan{})
				j.queue, j.key = "limited", one.key
				r := x.begin(id, "limited", plan{}, 1, x.at.Add(time.Duration(one.from)*time.Millisecond-time.Duration(i+1)*time.Millisecond))
				x.end(id, r, one.verdict, r.begun.Add(time.Duration(one.to-one.from)*time.Millisecond))
			}
			x.judgeLimits(x.now())
			x.found(c.rule)
		})
	}
}

// The table, the dead letters and the bad rows hold what was acknowledged, once, in order.
func TestEventsAreJudged(t *testing.T) {
	acked := []event{{id: "e1", user: "u", place: 0}, {id: "e2", user: "u", place: 1}, {id: "e3", user: "v", place: 0}, {id: "p", poison: true}, {id: "b", bad: true}}
	well := []row{{"e1", "u", "7"}, {"e3", "v", "7"}, {"e2", "u", "8"}}
	one := func(id string) map[string]int { return map[string]int{id: 1} }
	for _, c := range []struct {
		name, rule string
		rows       []row
		dead, bad  map[string]int
	}{
		{"as it must be", "", well, one("p"), one("b")},
		{"within one transaction in any order", "", []row{{"e2", "u", "7"}, {"e1", "u", "7"}, {"e3", "v", "9"}}, one("p"), one("b")},
		{"a row is missing", "lost", well[:2], one("p"), one("b")},
		{"a row is there twice", "events", append(well[:3:3], row{"e2", "u", "9"}), one("p"), one("b")},
		{"out of order", "order", []row{{"e2", "u", "7"}, {"e3", "v", "7"}, {"e1", "u", "8"}}, one("p"), one("b")},
		{"what is poison is a row", "events", append(well[:3:3], row{"p", "", "9"}), one("p"), one("b")},
		{"what is poison is nowhere", "lost", well, nil, one("b")},
		{"what is wrong is nowhere", "lost", well, one("p"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTold(t)
			x.ackEvents(acked)
			x.judgeEvents(c.rows, c.dead, c.bad, x.now())
			x.found(c.rule)
		})
	}
}

// The line is that of the last life, of its second half.
func TestGrowth(t *testing.T) {
	var all []sample
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for i := range 300 {
		s := sample{at.Add(time.Duration(i) * 2 * time.Second), size{Life: 2, RSS: 100<<10 + i*10}}
		if i < 50 {
			s.Life, s.RSS = 1, 900<<10
		}
		all = append(all, s)
	}
	g, ok := grown(all)
	if !ok || g.Short || g.KiBPerMin < 299 || g.KiBPerMin > 301 || g.ToKiB-g.FromKiB < 1200 || g.ToKiB-g.FromKiB > 1260 || g.PeakKiB != 100<<10+2990 {
		t.Errorf("%+v", g)
	}
	if g, _ := grown(all[:80]); !g.Short {
		t.Errorf("a life of a minute is judged: %+v", g)
	}
}
