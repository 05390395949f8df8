package openworkflow

import (
	"slices"

	"github.com/forebayhq/forebay/flow"
)

// graph is what leads to what in a flow, without the ways of failures.
type graph struct {
	order  []string            // each after what leads to it
	edges  map[string][]string // by step, what leads to it directly
	before map[string][]string // all that does

	handlers map[string][]string // by step, what is done when it fails, and only then
	caught   map[string]string   // by step of a handler, whose failure it is
}

func newGraph(d *flow.Definition) *graph {
	g := &graph{edges: map[string][]string{}, before: map[string][]string{}, handlers: map[string][]string{}, caught: map[string]string{}}
	link := func(from, to string) {
		if !slices.Contains(g.edges[to], from) {
			g.edges[to] = append(g.edges[to], from)
		}
	}
	for i := range d.Steps {
		s := &d.Steps[i]
		for _, n := range s.Needs {
			link(n, s.ID)
		}
		for _, to := range s.Parallel {
			link(s.ID, to)
		}
		for _, c := range s.Cases {
			for _, to := range c.To {
				link(s.ID, to)
			}
		}
	}
	g.catch(d)
	for len(g.order) < len(d.Steps) { // a loaded flow has no circle
		for i := range d.Steps {
			id := d.Steps[i].ID
			if slices.Contains(g.order, id) || slices.ContainsFunc(g.edges[id], func(n string) bool { return !slices.Contains(g.order, n) }) {
				continue
			}
			g.order = append(g.order, id)
			for _, n := range g.edges[id] {
				for _, all := range append([]string{n}, g.before[n]...) {
					if !slices.Contains(g.before[id], all) {
						g.before[id] = append(g.before[id], all)
					}
				}
			}
		}
	}
	return g
}

// catch finds what is reached by a failure only. What follows both it and the step that
// failed follows the step.
func (g *graph) catch(d *flow.Definition) {
	for i := range d.Steps {
		s := &d.Steps[i]
		to := target(s)
		if to == "" || len(g.edges[to]) > 0 || g.caught[to] != "" {
			continue
		}
		members := []string{to}
		for grown := true; grown; {
			grown = false
			for n := range d.Steps {
				id := d.Steps[n].ID
				from := g.edges[id]
				if len(from) > 0 && !slices.Contains(members, id) && !slices.ContainsFunc(from, func(f string) bool { return !slices.Contains(members, f) }) {
					members, grown = append(members, id), true
				}
			}
		}
		g.handlers[s.ID] = members
		for _, m := range members {
			g.caught[m] = s.ID
		}
		for id, from := range g.edges {
			if !slices.Contains(members, id) {
				left := slices.DeleteFunc(slices.Clone(from), func(f string) bool { return slices.Contains(members, f) })
				if len(left) < len(from) && !slices.Contains(left, s.ID) {
					left = append(left, s.ID)
				}
				g.edges[id] = left
			}
		}
	}
}

// target is where a failure leads, if it is further on.
func target(s *flow.Step) string {
	switch {
	case s.OnFailure.Mode == flow.Goto && s.OnFailure.Max == 0:
		return s.OnFailure.Goto
	case s.OnTimeout.Mode == flow.Goto && s.OnTimeout.Max == 0:
		return s.OnTimeout.Goto
	}
	return ""
}

func (g *graph) inOrder(steps []string) []string {
	out := make([]string, 0, len(steps))
	for _, id := range g.order {
		if slices.Contains(steps, id) {
			out = append(out, id)
		}
	}
	return out
}

// components are the parts of which none leads to another.
func (g *graph) components(steps []string) (parts [][]string) {
	left := g.inOrder(steps)
	for len(left) > 0 {
		part := []string{left[0]}
		for grown := true; grown; {
			grown = false
			for _, id := range left {
				if !slices.Contains(part, id) && slices.ContainsFunc(part, func(p string) bool { return slices.Contains(g.edges[p], id) || slices.Contains(g.edges[id], p) }) {
					part, grown = append(part, id), true
				}
			}
		}
		parts = append(parts, g.inOrder(part))
		left = slices.DeleteFunc(left, func(id string) bool { return slices.Contains(part, id) })
	}
	return parts
}

// bottleneck is the first step through which all of a part goes.
func (g *graph) bottleneck(steps []string) string {
	for _, id := range g.inOrder(steps) {
		before, after := g.around(steps, id)
		if len(before)+len(after)+1 == len(steps) {
			return id
		}
	}
	return ""
}

// around are the steps before and after one.
func (g *graph) around(steps []string, at string) (before, after []string) {
	for _, id := range g.inOrder(steps) {
		switch {
		case slices.Contains(g.before[at], id):
			before = append(before, id)
		case slices.Contains(g.before[id], at):
			after = append(after, id)
		}
	}
	return before, after
}

// joins is the first bottleneck that several ways lead to.
func (g *graph) joins(steps []string) string {
	for _, id := range g.inOrder(steps) {
		before, after := g.around(steps, id)
		if len(before)+len(after)+1 == len(steps) && (len(g.edges[id]) > 1 || len(steps) > 1 && len(before) > 0) {
			return id
		}
	}
	return ""
}

// level parts what nothing of a part leads to from the rest.
func (g *graph) level(steps []string) (first, rest []string) {
	for _, id := range g.inOrder(steps) {
		if slices.ContainsFunc(g.edges[id], func(n string) bool { return slices.Contains(steps, n) }) {
			rest = append(rest, id)
		} else {
			first = append(first, id)
		}
	}
	return first, rest
}

// within are a step and all of a part that it leads to.
func (g *graph) within(id string, steps []string) []string {
	_, after := g.around(steps, id)
	return append([]string{id}, after...)
}

// dominates tells that all others of a part are reached through one only.
func (g *graph) dominates(id string, steps []string) bool {
	for _, other := range steps {
		if other != id && (!slices.Contains(g.before[other], id) || slices.ContainsFunc(g.edges[other], func(n string) bool { return !slices.Contains(steps, n) })) {
			return false
		}
	}
	return true
}
