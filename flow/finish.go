package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
)

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
