package flow

import (
	"encoding/json"
	"slices"

	"cel.dev/cel-go/common/types"
)

var dyn = types.DynType

// Codes of failures that a run itself gives.
const (
	FailExpression = "expression" // one had no value, or the wrong type
	FailItems      = "items"      // too many items of a for_each failed
	FailCancelled  = "cancelled"
	FailTimeout    = "timeout"
	FailStuck      = "stuck"     // nothing drives it: a defect of ours, told rather than waited for
	FailDiscarded  = "discarded" // its dead letter was
	FailUnsent     = "unsent"    // its job cannot be: it breaks a limit, or its sub-flow is not there
)

// turn is one decision.
type turn struct {
	p     *Plan
	r     *Run
	input *Input
	Effects
}

// Advance books events and decides what follows. r is changed; what it asks for
// must be done, in any order, before or together with storing r. Events that are
// known already, of an earlier round, or of steps that were not sent change nothing.
// Without events it decides what follows from the state, as at the start.
func (p *Plan) Advance(r *Run, input *Input, events ...Event) Effects {
	t := &turn{p: p, r: r, input: input}
	for _, e := range events {
		t.book(e)
	}
	t.settle()
	return t.Effects
}

// book applies one event.
func (t *turn) book(e Event) {
	v, s := t.p.byID[e.Step], t.r.Steps[e.Step]
	switch {
	case v == nil || s == nil || e.Round != s.Round:
	case e.Undo:
		t.undone(s, e)
	case e.Item >= 0 && s.Each != nil:
		t.bookItem(v, s, e)
	case e.Item >= 0:
	case s.State == StepFailed && e.Type == EventCompleted && t.mendable(s):
		t.complete(v, s, e.Output, e.Large)
		t.mend()
	case s.State != StepSent && s.State != StepDead || s.Each != nil:
	case e.Type == EventCompleted:
		t.complete(v, s, e.Output, e.Large)
	case e.Type == EventCancelled && t.r.State != RunRunning:
		s.State, s.Error = StepCancelled, e.Error
	case s.State == StepDead && e.Error != nil && e.Error.Code == FailDiscarded:
		t.failed(v, s, OnFailure{Mode: Fail}, e.Error)
	default:
		on := v.OnFailure
		if e.Type == EventTimedOut {
			on = v.OnTimeout
		}
		if e.Type == EventCancelled || v.Kind == KindWait || e.Error != nil && e.Error.Code == FailUnsent {
			on = noDeadLetter(on)
		}
		t.failed(v, s, on, e.Error)
	}
}

func (t *turn) complete(v *vertex, s *StepRun, output json.RawMessage, large int) {
	t.r.Order++
	s.State, s.Order, s.Error = StepCompleted, t.r.Order, nil
	t.keep(v, s, output, large)
}

// failed decides what the failure of a step means. In a run that fails already it
// changes nothing else.
func (t *turn) failed(v *vertex, s *StepRun, on OnFailure, why *Failure) {
	if why == nil {
		why = &Failure{Code: "handler", Message: "it failed"}
	}
	s.Error = &Failure{Code: why.Code, Message: why.Message}
	running := t.r.State == RunRunning
	switch {
	case on.Mode == Skip:
		s.State, s.Taken = StepSkipped, true
	case on.Mode == DeadLetter && running:
		s.State = StepDead
	case on.Mode == Goto && running && !t.goesBack(v, on):
		s.State, s.Went = StepFailed, on.Goto
	case on.Mode == Goto && running && s.Loops < on.Max:
		s.Loops++
		t.again(t.p.byID[on.Goto].after)
	default:
		s.State = StepFailed
		t.fail(v.ID, why)
	}
}

func (t *turn) goesBack(v *vertex, on OnFailure) bool {
	to := t.p.byID[on.Goto]
	return to == v || slices.Contains(v.ancestors, to.n)
}

// fail begins the end of a run. The first reason is kept.
func (t *turn) fail(step string, why *Failure) {
	if t.r.State == RunRunning {
		t.r.State = RunFailing
		t.r.Failure = &Failure{Step: step, Code: why.Code, Message: why.Message}
	}
}

// again begins a further round of steps.
func (t *turn) again(steps []int) {
	for _, n := range steps {
		v := t.p.steps[n]
		s := t.r.Steps[v.ID]
		t.stop(v, s)
		t.forget(s)
		round := s.Round
		if s.State != StepBlocked || s.Each != nil {
			round++
		}
		t.r.Steps[v.ID] = &StepRun{State: StepBlocked, Round: round, Loops: s.Loops, Payload: s.Payload}
	}
}

// stop asks for the end of what a step has sent.
func (t *turn) stop(v *vertex, s *StepRun) {
	if s.State != StepSent && s.State != StepDead {
		return
	}
	items := []int{NoItem}
	if s.Each != nil {
		items = s.Each.open()
	}
	for _, item := range items {
		id := JobID(t.r.ID, v.ID, s.Round, item, false)
		switch {
		case s.State == StepDead:
			t.Drop = append(t.Drop, id)
		case v.Kind == KindFlow:
			t.CancelRuns = append(t.CancelRuns, id)
		default:
			t.Cancel = append(t.Cancel, id)
		}
	}
}

// settle goes on until nothing changes any more.
func (t *turn) settle() {
	for changed := true; changed; {
		changed = false
		for _, v := range t.p.steps {
			changed = t.look(v) || changed
		}
	}
	t.finish()
	if t.r.State.Final() {
		t.r.Paused = false
	}
}

// look lets a step do what it can do now.
func (t *turn) look(v *vertex) bool {
	s := t.r.Steps[v.ID]
	if s.State == StepSent && s.Each != nil {
		return t.nextItems(v, s)
	}
	if s.State != StepBlocked || t.r.State != RunRunning || t.r.Paused {
		return false
	}
	taken, open := 0, 0
	for _, e := range v.in {
		switch t.taken(e, v) {
		case yes:
			taken++
		case open_:
			open++
		}
	}
	if v.Kind == KindJoin {
		switch want := v.wanted(); {
		case taken >= want:
			t.start(v, s)
		case taken+open < want:
			s.State = StepSkipped
		default:
			return false
		}
		return true
	}
	switch {
	case open > 0:
		return false
	case taken > 0 || len(v.in) == 0:
		t.start(v, s)
	default:
		s.State = StepSkipped
	}
	return true
}

type decided uint8

const (
	open_ decided = iota
	yes
	no
)

// taken tells of an edge.
func (t *turn) taken(e edge, to *vertex) decided {
	from := t.p.steps[e.from]
	s := t.r.Steps[from.ID]
	took := false
	switch {
	case !s.State.Final():
		return open_
	case e.kind == edgeGoto:
		took = s.Went == to.ID
	case e.kind == edgeCase: // a branch that was skipped has chosen nothing
		took = s.State == StepCompleted && slices.Contains(s.To, to.ID)
	default:
		took = s.State == StepCompleted || s.State == StepSkipped && s.Taken
	}
	if took {
		return yes
	}
	return no
}

// start begins a step to which the way is open.
func (t *turn) start(v *vertex, s *StepRun) {
	vars, err := t.seen(v)
	if err == nil && v.when != nil {
		var wanted bool
		if wanted, err = v.when.bool(vars); err == nil && !wanted {
			s.State = StepSkipped
			return
		}
	}
	if err == nil {
		err = t.act(v, s, vars)
	}
	if err != nil {
		err = t.explained(t.p.ids(v.ancestors), err)
		t.failed(v, s, noDeadLetter(v.OnFailure), &Failure{Code: FailExpression, Message: err.Error()})
	}
}

// noDeadLetter is for what leaves no dead letter, for which a run could wait for ever: what
// never became a job, a job that somebody cancelled or that expired, a refused approval.
func noDeadLetter(on OnFailure) OnFailure {
	if on.Mode == DeadLetter {
		on.Mode = Fail
	}
	return on
}

func (p *Plan) ids(ns []int) []string {
	ids := make([]string, len(ns))
	for i, n := range ns {
		ids[i] = p.steps[n].ID
	}
	return ids
}
