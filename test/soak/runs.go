//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// soakFlow has a branch, steps side by side, a join, items, and what undoes a step.
const soakFlow = `flow: soak
input: {type: object, properties: {n: {type: integer}}}
steps:
  first: {use: step, queue: steps, with: {ms: 10}, compensate: {use: undo, queue: steps, with: {ms: 5}}}
  way:
    needs: first
    branch: [{when: input.n % 3 == 0, to: items}, {to: [left, right]}]
  items: {use: step, queue: steps, for_each: {in: "3", max_in_flight: 2}, with: {ms: 15}}
  left: {use: step, queue: steps, with: {ms: 5, fail: 1}}
  right: {use: step, queue: steps, with: {ms: 20}}
  both: {join: any, needs: [items, left, right]}
  pause: {delay: 50ms, needs: both}
  last: {use: step, queue: steps, needs: pause, with: {perm: "${input.n % 7 == 0}", ms: 5}}
`

// flowRuns starts runs of the flow and knows how each must end.
type flowRuns struct {
	p *producer

	mu   sync.Mutex // guards want
	want map[string]string
}

func (f *flowRuns) run(ctx, patient context.Context, mean time.Duration) {
	for n := 0; f.p.pause(ctx, mean); n++ {
		id := f.p.id("f")
		if !f.p.surely(patient, http.MethodPost, "/api/flows/soak/runs", options{"id": id, "input": options{"n": n}}, nil) {
			return
		}
		f.mu.Lock()
		f.want[id] = "completed"
		if n%7 == 0 {
			f.want[id] = "failed"
		}
		f.mu.Unlock()
		f.p.b.count(func(c *counts) { c.FlowRuns++ })
	}
}

// ended tells how many have not ended; with judge, each that is not as it must be is a finding.
func (f *flowRuns) ended(ctx context.Context, judge bool) (left int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, want := range f.want {
		var r struct {
			State   string
			Waiting []struct{ Step, Text string }
		}
		err := ask(ctx, http.MethodGet, f.p.s.nodes[0].url()+"/api/runs/"+url.PathEscape(id), nil, &r)
		if err != nil && said(err) != http.StatusNotFound {
			return 0, err
		}
		if r.State == want {
			delete(f.want, id)
			f.undone(id, want == "failed")
			continue
		}
		left++
		if judge {
			f.find(id, "it is %s, and had to be %s; it waits for %v; %v", r.State, want, r.Waiting, err)
		}
	}
	return left, nil
}

func (f *flowRuns) find(id, format string, args ...any) {
	f.p.b.mu.Lock()
	defer f.p.b.mu.Unlock()
	f.p.b.find(time.Now(), "flow", id, format, args...)
}

// undone: what a failed run had done was undone, and of no other.
func (f *flowRuns) undone(id string, failed bool) {
	f.p.b.mu.Lock()
	j := f.p.b.jobs[id+"/first~undo"]
	f.p.b.mu.Unlock()
	if (j != nil) != failed {
		f.find(id, "its first step was undone: %v; that it failed: %v", j != nil, failed)
	}
}

const everyTick = 2 * time.Second

// schedule makes one for a round, and gives what ends it.
func (p *producer) schedule(ctx context.Context) (name string, end func(context.Context)) {
	name = "soak." + p.round
	body := options{"every": "2s", "missed": "all", "overlap": "allow", "job": options{"queue": "work", "name": "work", "data": plan{MS: 5}, "attempts": 5, "deliveries": 1000}}
	p.surely(ctx, http.MethodPut, "/api/schedules/"+name, body, nil)
	return name, func(ctx context.Context) {
		p.surely(ctx, http.MethodDelete, "/api/schedules/"+name, nil, nil)
	}
}

// prepare makes what all rounds of a stand share.
func (s *stand) prepare(ctx context.Context) error {
	status, text, err := call(ctx, http.MethodPut, s.pathOf("/api/flows/soak"), []byte(soakFlow))
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the flow was refused: %d: %s", status, text)
	}
	if err != nil {
		return err
	}
	return s.limits(ctx)
}
