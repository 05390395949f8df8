package flow_test

import (
	"slices"
	"strconv"

	"github.com/forebayhq/forebay/flow"
)

// reference is what a run should be, computed anew from the first fact to the last,
// by the table of the package comment and nothing else. It is slow and plain: no
// state is kept between two questions.
type reference struct {
	def   *flow.Definition
	yes   map[string]bool // the members of the input, all of which are booleans
	items int             // of each for_each

	state  map[string]string // blocked, sent, dead, done, unwanted, skipped, failed, cancelled
	round  map[string]int
	loops  map[string]int
	went   map[string]string
	chosen map[string][]string
	ended  map[string]map[int]bool // items: true: well
	next   map[string]int
	done   []string // in the order in which they completed
	undo   map[string]string
	sent   map[string]bool // ids
	run    string
}

// interpret gives the state after the facts, each a job's end, in their order.
func interpret(def *flow.Definition, yes map[string]bool, items int, facts []flow.Event) *reference {
	r := &reference{
		def: def, yes: yes, items: items, run: "running",
		state: map[string]string{}, round: map[string]int{}, loops: map[string]int{}, went: map[string]string{},
		chosen: map[string][]string{}, ended: map[string]map[int]bool{}, next: map[string]int{}, undo: map[string]string{}, sent: map[string]bool{},
	}
	for _, s := range def.Steps {
		r.state[s.ID] = "blocked"
	}
	r.rest()
	for _, f := range facts {
		r.fact(f)
		r.rest()
	}
	return r
}

func (r *reference) step(id string) *flow.Step {
	s, _ := r.def.Step(id)
	return s
}

func (r *reference) send(id string, item int, undo bool) {
	name := "r/" + id
	if r.round[id] > 0 {
		name += "@" + strconv.Itoa(r.round[id])
	}
	if item >= 0 {
		name += "/" + strconv.Itoa(item)
	}
	if undo {
		name += "~undo"
	}
	r.sent[name] = true
}

func (r *reference) fact(f flow.Event) {
	id := f.Step
	s := r.step(id)
	well := f.Type == flow.EventCompleted
	switch {
	case f.Round != r.round[id]:
	case f.Undo && r.undo[id] == "sent":
		r.undo[id] = map[bool]string{true: "done", false: "failed"}[well]
	case f.Item >= 0 && r.state[id] == "sent":
		r.ended[id][f.Item] = well
	case f.Item < 0 && well && r.state[id] == "failed" && r.went[id] == "" && len(r.undo) == 0 && s.ForEach == nil:
		r.complete(id)
		r.mend()
	case f.Item >= 0 || r.state[id] != "sent" && r.state[id] != "dead":
	case well:
		r.complete(id)
	case f.Type == flow.EventCancelled:
		r.state[id] = "cancelled"
	case f.Type == flow.EventTimedOut:
		r.failed(id, s.OnTimeout)
	default:
		r.failed(id, s.OnFailure)
	}
}

// mend lets a run go on whose last failed step was replayed, and has ended well.
func (r *reference) mend() {
	for id, state := range r.state {
		if state == "failed" && r.went[id] == "" {
			return
		}
	}
	r.run = "running"
	for id, state := range r.state {
		if state == "cancelled" {
			r.state[id] = "blocked"
			r.round[id]++
			delete(r.ended, id)
			delete(r.next, id)
		}
	}
}

func (r *reference) complete(id string) {
	r.state[id] = "done"
	r.done = append(slices.DeleteFunc(r.done, func(d string) bool { return d == id }), id)
}

func (r *reference) failed(id string, on flow.OnFailure) {
	running := r.run == "running"
	switch {
	case on.Mode == flow.Skip:
		r.state[id] = "skipped"
	case on.Mode == flow.DeadLetter && running:
		r.state[id] = "dead"
	case on.Mode == flow.Goto && running && !r.before(on.Goto, id):
		r.state[id], r.went[id] = "failed", on.Goto
	case on.Mode == flow.Goto && running && r.loops[id] < on.Max:
		r.loops[id]++
		for _, s := range r.def.Steps {
			if s.ID == on.Goto || r.before(on.Goto, s.ID) {
				if r.state[s.ID] != "blocked" {
					r.round[s.ID]++
				}
				r.state[s.ID] = "blocked"
				delete(r.went, s.ID)
				delete(r.ended, s.ID)
				delete(r.next, s.ID)
				r.done = slices.DeleteFunc(r.done, func(d string) bool { return d == s.ID })
			}
		}
	default:
		r.state[id] = "failed"
		if running {
			r.run = "failing"
		}
	}
}

// before tells whether a is an ancestor of b, or b itself.
func (r *reference) before(a, b string) bool {
	if a == b {
		return true
	}
	for _, from := range r.leads(b) {
		if r.before(a, from.id) {
			return true
		}
	}
	return false
}

type lead struct{ id, how string }

// leads are the edges to a step.
func (r *reference) leads(to string) (all []lead) {
	add := func(id, how string) {
		if i := slices.IndexFunc(all, func(l lead) bool { return l.id == id }); i >= 0 {
			if how == "case" {
				all[i].how = how
			}
			return
		}
		all = append(all, lead{id, how})
	}
	for _, s := range r.def.Steps {
		if slices.Contains(r.step(to).Needs, s.ID) || slices.Contains(s.Parallel, to) {
			add(s.ID, "need")
		}
		for _, c := range s.Cases {
			if slices.Contains(c.To, to) {
				add(s.ID, "case")
			}
		}
		for _, on := range []flow.OnFailure{s.OnFailure, s.OnTimeout} {
			if on.Mode == flow.Goto && on.Goto == to && on.Max == 0 { // those with a max go back
				add(s.ID, "goto")
			}
		}
	}
	return all
}

// rest goes on until nothing changes.
func (r *reference) rest() {
	for {
		before := r.picture()
		for _, s := range r.def.Steps {
			r.look(&s)
		}
		r.over()
		if r.picture() == before {
			return
		}
	}
}

func (r *reference) picture() (p string) {
	for _, s := range r.def.Steps {
		p += s.ID + r.state[s.ID] + strconv.Itoa(r.round[s.ID]) + strconv.Itoa(r.next[s.ID]) + r.undo[s.ID] + ";"
	}
	return p + r.run
}

func (r *reference) look(s *flow.Step) {
	if s.ForEach != nil && r.state[s.ID] == "sent" {
		r.each(s)
		return
	}
	if r.state[s.ID] != "blocked" || r.run != "running" {
		return
	}
	taken, open := 0, 0
	leads := r.leads(s.ID)
	for _, l := range leads {
		switch state := r.state[l.id]; {
		case state == "blocked" || state == "sent" || state == "dead":
			open++
		case l.how == "need" && (state == "done" || state == "skipped"),
			l.how == "case" && state == "done" && slices.Contains(r.chosen[l.id], s.ID),
			l.how == "goto" && r.went[l.id] == s.ID:
			taken++
		}
	}
	want := s.Join.Count
	if want == 0 {
		want = len(leads)
	}
	join := s.Kind == flow.KindJoin
	switch {
	case join && taken >= want:
		r.start(s)
	case join && taken+open < want, !join && open == 0 && taken == 0 && len(leads) > 0:
		r.state[s.ID] = "unwanted"
	case !join && open == 0:
		r.start(s)
	}
}

func (r *reference) start(s *flow.Step) {
	switch {
	case s.When != "" && !r.yes[s.When[len("input."):]]:
		r.state[s.ID] = "unwanted"
	case s.Kind == flow.KindJoin || s.Kind == flow.KindParallel:
		r.complete(s.ID)
	case s.Kind == flow.KindBranch:
		r.chosen[s.ID] = nil
		for _, c := range s.Cases {
			if c.When == "" || r.yes[c.When[len("input."):]] {
				r.chosen[s.ID] = c.To
				break
			}
		}
		r.complete(s.ID)
	case s.ForEach != nil:
		r.state[s.ID], r.ended[s.ID], r.next[s.ID] = "sent", map[int]bool{}, 0
		r.each(s)
	default:
		r.send(s.ID, -1, false)
		r.state[s.ID] = "sent"
		if s.Kind == flow.KindEmit {
			r.complete(s.ID)
		}
	}
}

func (r *reference) each(s *flow.Step) {
	bad := 0
	for _, well := range r.ended[s.ID] {
		if !well {
			bad++
		}
	}
	open := r.next[s.ID] - len(r.ended[s.ID])
	over := bad > s.ForEach.Failures || r.run != "running"
	if !over && open <= s.ForEach.InFlight/2 {
		for ; r.next[s.ID] < r.items && open < s.ForEach.InFlight; open++ {
			r.send(s.ID, r.next[s.ID], false)
			r.next[s.ID]++
		}
	}
	switch {
	case open > 0 || !over && r.next[s.ID] < r.items:
	case bad <= s.ForEach.Failures && r.next[s.ID] == r.items:
		r.complete(s.ID)
	case r.run != "running":
		r.state[s.ID] = "cancelled"
	default:
		r.failed(s.ID, s.OnFailure)
	}
}

// over looks whether the run has ended, or is to be undone.
func (r *reference) over() {
	if r.run == "failing" {
		for id, state := range r.state {
			if state == "dead" {
				r.state[id] = "failed"
			}
		}
	}
	open := 0
	for _, state := range r.state {
		if state == "sent" || state == "dead" || state == "blocked" && r.run == "running" {
			open++
		}
	}
	switch {
	case open > 0:
	case r.run == "running":
		r.run = "completed"
	case r.run == "failing" || r.run == "undoing":
		r.run = "undoing"
		for _, id := range slices.Backward(r.done) {
			if r.step(id).Compensate == nil || r.undo[id] == "done" || r.undo[id] == "failed" {
				continue
			}
			if r.undo[id] == "" {
				r.undo[id] = "sent"
				r.send(id, -1, true)
			}
			return
		}
		r.run = "failed"
	}
}
