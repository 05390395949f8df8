package flow

import (
	"slices"
)

// quiet asks what is in flight in a run that fails to end: all of it where the run is
// to stop, else what may take long without work being done. Jobs that run may end.
func (t *turn) quiet() {
	for _, v := range t.p.steps {
		s := t.r.Steps[v.ID]
		if s.State == StepDead {
			s.State = StepFailed
			continue
		}
		idle := v.Kind == KindDelay || v.Kind == KindWait || v.Kind == KindFlow
		if s.State == StepSent && !s.Asked && (t.r.Stopped || idle) {
			s.Asked = true
			t.stop(v, s)
		}
	}
}

// nextUndo sends the next compensation, the last completed step's first, or ends the
// run.
func (t *turn) nextUndo() {
	for {
		var next *vertex
		for _, v := range t.p.steps {
			switch s := t.r.Steps[v.ID]; {
			case s.Undo == UndoSent:
				return
			case t.r.NoUndo || v.Compensate == nil || s.State != StepCompleted || s.Undo != "":
			case next == nil || s.Order > t.r.Steps[next.ID].Order:
				next = v
			}
		}
		if next == nil {
			t.r.State = RunFailed
			if t.r.Stopped {
				t.r.State = RunCancelled
			}
			return
		}
		t.undo(next, t.r.Steps[next.ID])
	}
}

func (t *turn) undo(v *vertex, s *StepRun) {
	ids := append(t.p.ids(v.ancestors), v.ID)
	m := Send{
		ID: JobID(t.r.ID, v.ID, s.Round, NoItem, true), Step: v.ID, Round: s.Round, Item: NoItem, Undo: true,
		Kind: KindJob, Use: v.Compensate.Use, Policy: v.Compensate.Policy,
	}
	vars, err := t.vars(ids)
	if err == nil && v.undo.with != nil {
		m.Payload, err = v.undo.with.fill(vars)
	} else {
		m.Payload = t.context(ids)
	}
	if err == nil {
		m.Group, err = v.undo.group.string(vars)
	}
	if err == nil {
		m.LimitKey, err = v.undo.limit.string(vars)
	}
	if err != nil {
		s.Undo = UndoFailed
		s.Error = &Failure{Code: FailExpression, Message: "its compensation: " + t.explained(ids, err).Error()}
		return
	}
	s.Undo = UndoSent
	t.Send = append(t.Send, m)
}

// undone books the end of a compensation. One that has failed does not keep the
// others from running.
func (t *turn) undone(s *StepRun, e Event) {
	switch {
	case e.Type == EventCompleted && (s.Undo == UndoSent || s.Undo == UndoFailed):
		s.Undo, s.Error = UndoDone, nil
	case s.Undo == UndoSent:
		s.Undo, s.Error = UndoFailed, e.Error
	}
}

// mendable tells whether a run that has failed may go on where a failed step has
// ended well after all: its dead letter was replayed.
func (t *turn) mendable(s *StepRun) bool {
	undone := func(s *StepRun) bool { return s.Undo != "" }
	return s.Went == "" && !t.r.Stopped && !t.anyStep(undone) && t.r.State != RunCompleted
}

// mend lets the run go on once no step of it is failed any more.
func (t *turn) mend() {
	if t.r.State == RunRunning || t.anyStep(func(s *StepRun) bool { return s.State == StepFailed && s.Went == "" }) {
		return
	}
	t.reopen()
	var lost []int
	for _, v := range t.p.steps {
		if t.r.Steps[v.ID].State == StepCancelled {
			lost = append(lost, v.n)
		}
	}
	t.again(lost)
}

func (t *turn) reopen() {
	t.Reopened = t.r.State.Final()
	t.r.State, t.r.Failure, t.r.Stopped, t.r.NoUndo, t.r.Output = RunRunning, nil, false, false, nil
	for _, s := range t.r.Steps {
		s.Asked = false
	}
}

func (t *turn) anyStep(is func(*StepRun) bool) bool {
	return slices.ContainsFunc(t.p.steps, func(v *vertex) bool { return is(t.r.Steps[v.ID]) })
}
