package flow

import (
	"encoding/json"

	"cel.dev/cel-go/common/types"

	"github.com/forebayhq/forebay"
)

// InFlight lists the ids of the jobs that a run waits for.
func (p *Plan) InFlight(r *Run) (ids []string) {
	for _, v := range p.steps {
		s := r.Steps[v.ID]
		switch {
		case s.Undo == UndoSent:
			ids = append(ids, JobID(r.ID, v.ID, s.Round, NoItem, true))
		case s.State == StepSent && s.Each != nil:
			for _, item := range s.Each.open() {
				ids = append(ids, JobID(r.ID, v.ID, s.Round, item, false))
			}
		case s.State == StepSent || s.State == StepDead:
			ids = append(ids, JobID(r.ID, v.ID, s.Round, NoItem, false))
		}
	}
	return ids
}

// Resend makes the jobs of these ids again, as they were sent: for those that a
// store has lost. Ids that the run does not wait for are left out.
func (p *Plan) Resend(r *Run, input *Input, ids []string) ([]Send, error) {
	t := &turn{p: p, r: r, input: input}
	for _, id := range ids {
		run, step, round, item, undo, ok := ParseJobID(id)
		v, s := p.byID[step], r.Steps[step]
		if !ok || run != r.ID || v == nil || s == nil || round != s.Round {
			continue
		}
		if undo {
			if s.Undo == UndoSent {
				t.undo(v, s)
			}
			continue
		}
		if s.State != StepSent || (s.Each != nil) != (item >= 0) {
			continue
		}
		send, err := t.resend(v, s, item)
		if err != nil {
			return nil, t.explained(p.ids(v.ancestors), err)
		}
		t.Send = append(t.Send, send)
	}
	return t.Send, nil
}

func (t *turn) resend(v *vertex, s *StepRun, n int) (Send, error) {
	vars, err := t.vars(t.p.ids(v.ancestors))
	if err != nil || n < 0 {
		if err != nil {
			return Send{}, err
		}
		return t.sending(v, s, n, vars)
	}
	list, total, err := items(v, vars)
	if err != nil {
		return Send{}, err
	}
	if n >= total {
		return Send{}, forebay.Errorf(forebay.CodeConflict, "", "%s gives %d items, and %d is wanted", v.ForEach.In, total, n)
	}
	return t.item(v, s, list, n, vars, types.Int(n))
}

// Matches tells whether an event is one that a step of a run waits for.
func (p *Plan) Matches(r *Run, input *Input, step, event string, payload json.RawMessage) (bool, error) {
	v, s := p.byID[step], r.Steps[step]
	if v == nil || s == nil || s.State != StepSent || v.Kind != KindWait || v.Wait.Event != event {
		return false, nil
	}
	if v.match == nil {
		return true, nil
	}
	t := &turn{p: p, r: r, input: input}
	vars, err := t.vars(p.ids(v.ancestors))
	if err != nil {
		return false, err
	}
	if vars["event"], err = p.language.types.decode(payload, dyn); err != nil {
		return false, err
	}
	return v.match.bool(vars)
}
