package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
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
		if e.Error != nil && e.Error.Code == FailUnsent {
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
	vars, err := t.vars(t.p.ids(v.ancestors))
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

// noDeadLetter is for what never became a job, of which there is no dead letter.
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

// act does what the step is for.
func (t *turn) act(v *vertex, s *StepRun, vars map[string]any) error {
	switch v.Kind {
	case KindParallel, KindJoin:
		t.complete(v, s, nil, 0)
		return nil
	case KindBranch:
		return t.choose(v, s, vars)
	}
	if v.ForEach != nil {
		return t.beginEach(v, s, vars)
	}
	send, err := t.sending(v, s, NoItem, vars)
	if err != nil {
		return err
	}
	t.Send = append(t.Send, send)
	s.State = StepSent
	if v.Kind == KindEmit {
		t.complete(v, s, nil, 0)
	}
	return nil
}

func (t *turn) choose(v *vertex, s *StepRun, vars map[string]any) error {
	for i, one := range v.Cases {
		if when := v.cases[i]; when != nil {
			if holds, err := when.bool(vars); err != nil {
				return err
			} else if !holds {
				continue
			}
		}
		s.To = one.To
		break
	}
	var out bytes.Buffer
	writeJSON(&out, map[string]any{"to": append([]string{}, s.To...)})
	t.complete(v, s, out.Bytes(), 0)
	return nil
}

// sending makes the job of a step, or of one of its items.
func (t *turn) sending(v *vertex, s *StepRun, item int, vars map[string]any) (Send, error) {
	m := Send{
		ID: JobID(t.r.ID, v.ID, s.Round, item, false), Step: v.ID, Round: s.Round, Item: item,
		Kind: v.Kind, Policy: v.Policy, Reason: v.Reason,
	}
	var err error
	with := v.with
	switch v.Kind {
	case KindJob:
		m.Use = v.Use
	case KindFlow:
		m.Use, m.Version = v.Flow.Name, v.Flow.Version
	case KindEmit:
		m.Use, with = v.Emit.Type, v.data
	case KindWait:
		m.Delay = v.Wait.Timeout
	case KindDelay:
		m.Delay = v.Delay.For
		if v.until != nil {
			if m.Until, err = v.until.time(vars); err != nil {
				return m, err
			}
		}
	}
	switch {
	case s.Payload != nil:
		m.Payload = s.Payload
	case with != nil:
		m.Payload, err = with.fill(vars)
	case v.Kind != KindDelay && v.Kind != KindWait:
		m.Payload = t.context(t.p.ids(v.ancestors))
	}
	if err == nil {
		m.Group, err = v.group.string(vars)
	}
	if err == nil {
		m.LimitKey, err = v.limit.string(vars)
	}
	return m, err
}

// finish ends the run when nothing is left to do.
func (t *turn) finish() {
	r := t.r
	if r.State == RunFailing {
		t.quiet()
	}
	busy, blocked := "", ""
	for _, v := range t.p.steps {
		switch r.Steps[v.ID].State {
		case StepSent, StepDead:
			busy = v.ID
		case StepBlocked:
			blocked = v.ID
		}
	}
	switch {
	case r.State == RunRunning && busy == "" && blocked == "":
		t.end()
	case r.State == RunRunning && busy == "" && !r.Paused:
		t.fail("", &Failure{Code: FailStuck, Message: fmt.Sprintf("the step %s waits, and nothing is on its way", blocked)})
		t.finish()
	case r.State == RunFailing && busy == "":
		r.State = RunUndoing
		t.nextUndo()
	case r.State == RunUndoing:
		t.nextUndo()
	}
}

// end completes a run.
func (t *turn) end() {
	out, err := t.outcome()
	if err != nil {
		t.fail("", &Failure{Code: FailExpression, Message: err.Error()})
		t.finish()
		return
	}
	t.r.State, t.r.Output = RunCompleted, out
}

// outcome is what the run gives.
func (t *turn) outcome() (json.RawMessage, error) {
	if t.p.output != nil {
		ids := make([]string, 0, len(t.p.steps))
		for _, v := range t.p.steps {
			ids = append(ids, v.ID)
		}
		vars, err := t.vars(ids)
		if err != nil {
			return nil, err
		}
		out, err := t.p.output.fill(vars)
		if err != nil {
			return nil, t.explained(ids, fmt.Errorf("the output: %w", err))
		}
		return out, nil
	}
	outputs := make(map[string]json.RawMessage)
	for _, id := range t.p.leaves {
		if s := t.r.Steps[id]; len(s.Output) > 0 {
			outputs[id] = s.Output
		}
	}
	var b bytes.Buffer
	writeJSON(&b, outputs)
	return b.Bytes(), nil
}
