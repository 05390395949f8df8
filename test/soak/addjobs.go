//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

type options map[string]any

// added is the answer to a new job.
type added struct {
	JobID     string
	Duplicate bool
	Error     *struct{ Code, Message string }
}

// plan draws what a handler will do, and how many attempts its job has.
func (p *producer) plan() (plan, int) {
	what := plan{MS: p.rng.IntN(60)}
	switch k := p.rng.IntN(100); {
	case k < 12:
		what.Fail = 1 + p.rng.IntN(3) // of 5
	case k < 15:
		what.Fail = 9
		return what, 2
	case k < 18:
		what.Perm = true
	}
	return what, 5
}

// draw makes a job; more are its options.
func (p *producer) draw(kind, queue, name string, more options) (*job, options) {
	what, attempts := p.plan()
	j := &job{id: p.id(kind), queue: queue, plan: what, attempts: attempts}
	body := options{"id": j.id, "queue": queue, "name": name, "data": what, "attempts": attempts, "deliveries": 1000}
	for k, v := range more {
		body[k] = v
	}
	return j, body
}

// add sends a job until it is answered.
func (p *producer) add(ctx context.Context, j *job, body options, group string) (added, bool) {
	p.b.expect(j, group, time.Now())
	var a added
	if !p.surely(ctx, http.MethodPost, "/api/jobs", body, &a) {
		return a, false
	}
	if a.JobID == j.id {
		p.b.ack(j.id)
	}
	return a, true
}

// jobs sends jobs of all kinds but those of groups.
func (p *producer) jobs(ctx, patient context.Context, mean time.Duration) {
	for p.pause(ctx, mean) {
		switch k := p.rng.IntN(100); {
		case k < 30:
			j, body := p.draw("j", "work", "work", options{"priority": p.rng.IntN(10)})
			p.add(patient, j, body, "")
		case k < 35:
			p.bulk(patient, 20, func() (*job, options) {
				return p.draw("b", "work", "work", options{"priority": p.rng.IntN(10)})
			})
		case k < 45:
			p.crowd(patient)
		case k < 65:
			p.delayed(patient)
		case k < 75:
			p.twice(patient)
		case k < 95:
			j, body := p.draw("p", "pulled", "pulled", nil)
			p.add(patient, j, body, "")
		default:
			j, body := p.draw("x", "programs", "program", nil)
			p.add(patient, j, body, "")
		}
	}
}

// crowd adds jobs of one key, more than may run at once and long enough to meet each other.
func (p *producer) crowd(ctx context.Context) {
	key := fmt.Sprint("k", p.rng.IntN(4))
	p.bulk(ctx, 1+p.rng.IntN(5), func() (*job, options) {
		j, body := p.draw("l", "limited", "limited", options{"limitKey": key})
		j.key, j.plan.MS = key, 50+p.rng.IntN(250)
		body["data"] = j.plan
		return j, body
	})
}

// bulk adds some with one request.
func (p *producer) bulk(ctx context.Context, n int, draw func() (*job, options)) {
	var items []options
	for range n {
		j, body := draw()
		p.b.expect(j, "", time.Now())
		items = append(items, body)
	}
	for len(items) > 0 {
		var answers struct{ Items []added }
		if !p.surely(ctx, http.MethodPost, "/api/jobs/bulk", options{"items": items}, &answers) {
			return
		}
		var again []options
		for i, a := range answers.Items {
			if a.Error == nil {
				p.b.ack(a.JobID)
			} else {
				again = append(again, items[i])
			}
		}
		items = again
		if len(items) > 0 && !rest(ctx, 200*time.Millisecond) {
			return
		}
	}
}

// delayed adds one for later, and cancels some of them.
func (p *producer) delayed(ctx context.Context) {
	delay := within(p.rng, 300*time.Millisecond, 4*time.Second).Round(time.Millisecond)
	j, body := p.draw("d", "work", "work", options{"delay": delay.String()})
	j.delay = delay
	if _, ok := p.add(ctx, j, body, ""); !ok || p.rng.IntN(3) > 0 {
		return
	}
	path := "/api/jobs/" + url.PathEscape(j.id) + "/cancel"
	var was struct{ State string }
	nodes := p.s.apis(path)
	p.b.cancel(j.id, "")
	err := ask(ctx, http.MethodPost, nodes[0].url()+path, options{"reason": "soak"}, &was)
	if err == nil {
		p.b.cancel(j.id, was.State)
	} // else it may be cancelled, or not
}

// twice adds two jobs with one dedup key.
func (p *producer) twice(ctx context.Context) {
	key := p.id("k")
	for range 2 {
		j, body := p.draw("u", "work", "work", options{"dedup": options{"key": key}})
		a, ok := p.add(ctx, j, body, "")
		switch {
		case !ok:
		case a.JobID == j.id:
			p.b.first(key, j.id, time.Now())
		default:
			p.b.drop(j.id, time.Now())
			p.b.count(func(c *counts) { c.Duplicates++ })
		}
	}
}

// groups adds the jobs of some groups, each when the one before it was answered.
func (p *producer) groups(ctx, patient context.Context, groups int, mean time.Duration) {
	for p.pause(ctx, mean) {
		group := fmt.Sprintf("%s-%s-g%d", p.round, p.name, p.rng.IntN(groups))
		j, body := p.draw("g", "grouped", "grouped", options{"group": group})
		if _, ok := p.add(patient, j, body, group); !ok {
			return // whether it is there is not known: what comes after it in its group would be judged by it
		}
	}
}
