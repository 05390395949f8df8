package flow

import (
	"fmt"
	"slices"
	"strings"
)

// edges links the steps.
func (c *compiler) edges() {
	for _, v := range c.steps {
		for i, id := range v.Needs {
			c.edge(id, v.ID, edgeNeed, fmt.Sprintf("%s[%d]", v.path("needs"), i))
		}
	}
	for _, v := range c.steps {
		for i, one := range v.Cases {
			at := fmt.Sprintf("%s[%d]", v.path("branch"), i)
			for j, id := range one.To {
				c.edge(v.ID, id, edgeCase, fmt.Sprintf("%s.to[%d]", at, j))
			}
			if last := i == len(v.Cases)-1; one.When == "" && !last {
				c.wrong(at, CodeUnreachable, "this case is without when, so the cases after it are never looked at; move it to the end")
			} else if last && one.When != "" {
				c.wrong(at, CodeNoDefault, "where no case holds, nothing follows %s; add a last case without when if something should", v.ID).Warning = true
			}
		}
		for i, id := range v.Parallel {
			c.edge(v.ID, id, edgeNeed, fmt.Sprintf("%s[%d]", v.path("parallel"), i))
		}
		if v.Kind == KindJoin && len(v.Needs) == 0 {
			c.wrong(v.path("join"), CodeMissing, "the join %s has no needs; it says what it joins", v.ID)
		}
	}
}

// edge adds one. The same pair has one edge; that of a branch goes before.
func (c *compiler) edge(from, to string, kind edgeKind, path string) {
	for _, id := range []string{from, to} {
		if c.byID[id] == nil {
			c.wrong(path, CodeUnknownStep, "there is no step %q%s", id, near(id, c.allIDs()))
			return
		}
	}
	f, t := c.byID[from], c.byID[to]
	for i := range t.in {
		if t.in[i].from == f.n {
			t.in[i].kind = max(t.in[i].kind, kind)
			return
		}
	}
	t.in = append(t.in, edge{f.n, kind})
	f.out = append(f.out, t.n)
}

// order finds cycles of edges, then ancestors, and adds the edges of gotos.
func (c *compiler) order() {
	sorted := c.sort()
	if c.cyclic {
		return
	}
	c.relate(sorted)
	for _, v := range c.steps {
		for _, on := range []OnFailure{v.OnFailure, v.OnTimeout} {
			if on.Mode == Goto {
				c.goTo(v, on)
			}
		}
	}
	if sorted = c.sort(); !c.cyclic {
		c.relate(sorted)
	}
}

func (c *compiler) goTo(v *vertex, on OnFailure) {
	path := v.path("on_failure")
	if on == v.OnTimeout && on != v.OnFailure {
		path = v.path("on_timeout")
	}
	t := c.byID[on.Goto]
	switch {
	case t == nil:
		c.wrong(path, CodeUnknownStep, "there is no step %q to go to%s", on.Goto, near(on.Goto, c.allIDs()))
	case t == v || slices.Contains(v.ancestors, t.n):
		v.back = true
		if on.Max == 0 {
			c.wrong(path, CodeUnboundedGoto, "going back to %s could go round for ever; say how often at most: {goto: %s, max: 3}", t.ID, t.ID)
		}
	case on.Max != 0:
		c.wrong(path, CodeValue, "max is for a goto to a step before; %s comes after %s, or beside it", t.ID, v.ID)
	default:
		if slices.ContainsFunc(t.in, func(e edge) bool { return e.from == v.n }) {
			c.wrong(path, CodeValue, "%s follows %s anyway; a goto leads to a step that does not, or use on_failure: skip", t.ID, v.ID)
			return
		}
		t.in = append(t.in, edge{v.n, edgeGoto})
		v.out = append(v.out, t.n)
	}
}

// sort puts steps after those that lead to them; what remains are cycles.
func (c *compiler) sort() []int {
	left := make([]int, len(c.steps))
	var ready, sorted []int
	for _, v := range c.steps {
		if left[v.n] = len(v.in); left[v.n] == 0 {
			ready = append(ready, v.n)
		}
	}
	for len(ready) > 0 {
		n := ready[0]
		ready = ready[1:]
		sorted = append(sorted, n)
		for _, to := range c.steps[n].out {
			if left[to]--; left[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	if len(sorted) < len(c.steps) {
		c.cyclic = true
		c.tellCycle(left)
	}
	return sorted
}

// tellCycle walks backwards among the steps that are left until one comes again.
func (c *compiler) tellCycle(left []int) {
	n := slices.IndexFunc(left, func(k int) bool { return k > 0 })
	var walk []int
	for !slices.Contains(walk, n) {
		walk = append(walk, n)
		for _, e := range c.steps[n].in {
			if left[e.from] > 0 {
				n = e.from
				break
			}
		}
	}
	walk = append(walk[slices.Index(walk, n):], n)
	slices.Reverse(walk)
	first := c.steps[n]
	path := first.path("needs")
	if len(first.Needs) == 0 {
		path = "steps." + first.ID
	}
	c.wrong(path, CodeCycle, "the steps wait for each other: %s; take one of these out", strings.Join(c.ids(walk), " → "))
}

// relate finds what comes before and after each step.
func (c *compiler) relate(sorted []int) {
	before := make([]map[int]bool, len(c.steps))
	for _, v := range c.steps {
		v.after = nil
	}
	for _, n := range sorted {
		before[n] = map[int]bool{}
		for _, e := range c.steps[n].in {
			before[n][e.from] = true
			for a := range before[e.from] {
				before[n][a] = true
			}
		}
	}
	for n, v := range c.steps {
		v.ancestors = nil
		for a := range c.steps {
			if before[n][a] {
				v.ancestors = append(v.ancestors, a)
			}
			if before[a][n] || a == n {
				v.after = append(v.after, a)
			}
		}
	}
}

// choice is a point where the way parts: ways are the edges that cannot be taken
// together with each other.
type choice struct {
	step int
	ways int
	of   func(to int, kind edgeKind) []int // on which ways an edge from the step is taken
}

func (c *compiler) choices() (all []choice) {
	for _, v := range c.steps {
		switch {
		case v.Kind == KindBranch:
			all = append(all, choice{v.n, len(v.Cases), func(to int, kind edgeKind) (ways []int) {
				for i, one := range v.Cases {
					if kind == edgeNeed || kind == edgeCase && slices.Contains(one.To, c.steps[to].ID) {
						ways = append(ways, i)
					}
				}
				return ways
			}})
		case slices.ContainsFunc(v.out, func(to int) bool { return c.kindOf(v.n, to) == edgeGoto }):
			all = append(all, choice{v.n, 2, func(_ int, kind edgeKind) []int {
				if kind == edgeGoto {
					return []int{1}
				}
				return []int{0}
			}})
		}
	}
	return all
}

func (c *compiler) kindOf(from, to int) edgeKind {
	for _, e := range c.steps[to].in {
		if e.from == from {
			return e.kind
		}
	}
	return edgeNeed
}

// possible finds the steps that may run when a choice goes one way; nil: any way.
func (c *compiler) possible(ch *choice, way int) []bool {
	can := make([]bool, len(c.steps))
	for _, n := range c.sort() {
		v := c.steps[n]
		taken := 0
		for _, e := range v.in {
			from := c.steps[e.from]
			if !can[e.from] || from.Kind == KindDead || e.kind == edgeGoto && !from.canFail() {
				continue
			}
			if ch != nil && ch.step == e.from && !slices.Contains(ch.of(n, e.kind), way) {
				continue
			}
			taken++
		}
		can[n] = taken > 0 || len(v.in) == 0
		if v.Kind == KindJoin && taken < v.wanted() {
			can[n] = false
		}
	}
	return can
}

func (v *vertex) canFail() bool { return v.OnFailure.Mode == Goto || v.OnTimeout.Mode == Goto }

// wanted is how many edges a join needs.
func (v *vertex) wanted() int {
	if v.Join.Count == 0 {
		return len(v.in)
	}
	return v.Join.Count
}

// reach finds steps to which nothing can lead.
func (c *compiler) reach() {
	can := c.possible(nil, 0)
	for _, v := range c.steps {
		if v.Kind == KindJoin && v.Join.Count > len(v.in) {
			c.wrong(v.path("join"), CodeValue, "the join wants %d steps, but %d lead to it", v.Join.Count, len(v.in))
			continue
		}
		if !can[v.n] {
			c.wrong("steps."+v.ID, CodeUnreachable, "nothing can lead to the step %s: what it needs ends the run, or is unreachable itself", v.ID)
		}
	}
}

// joins finds joins of steps that exclude each other.
func (c *compiler) joins() {
	any := c.possible(nil, 0)
	for _, ch := range c.choices() {
		ways := make([][]bool, ch.ways)
		for i := range ways {
			ways[i] = c.possible(&ch, i)
		}
		for _, v := range c.steps {
			if v.Kind != KindJoin || !any[v.n] {
				continue
			}
			if !slices.ContainsFunc(ways, func(can []bool) bool { return can[v.n] }) {
				c.wrong(v.path("join"), CodeExclusive, "the join %s could never complete: the step %s chooses between the ways to it, so that fewer than %d of them are taken; use join: any, or a step that needs them",
					v.ID, c.steps[ch.step].ID, v.wanted())
				any[v.n] = false // told once
			}
		}
	}
}
