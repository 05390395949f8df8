package flow

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/forebayhq/forebay"
)

// Command is what a person, or a clock, wants of a run.
type Command struct {
	Do      Do              `json:"do"`
	Step    string          `json:"step,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"` // retry of a step: what it gets, instead of with
	NoUndo  bool            `json:"noUndo,omitempty"`  // cancel: leave what was done as it is
}

// Do is a command's verb.
type Do string

const (
	DoPause   Do = "pause"   // what was sent goes on, nothing new begins
	DoResume  Do = "resume"  //
	DoCancel  Do = "cancel"  // what was sent is asked to end; then compensations, then it is cancelled
	DoExpire  Do = "expire"  // its timeout has come: as cancel, and it is failed
	DoSkip    Do = "skip"    // a step that has not completed: as if it had, without output
	DoRetry   Do = "retry"   // from a step on, or, without one, whatever has failed
	DoDiscard Do = "discard" // give up the dead letter of a step that the run waits for
)

// Command changes a run. CodeConflict: its state does not allow that; CodeNotFound:
// it has no such step.
func (p *Plan) Command(r *Run, input *Input, c Command) (Effects, error) {
	t := &turn{p: p, r: r, input: input}
	v := p.byID[c.Step]
	if v == nil && (c.Step != "" || c.Do == DoSkip || c.Do == DoDiscard) {
		return Effects{}, forebay.Errorf(forebay.CodeNotFound, "", "the run has no step %q%s", c.Step, near(c.Step, slices.Sorted(maps.Keys(r.Steps))))
	}
	var err error
	switch c.Do {
	case DoPause, DoResume:
		err = t.pause(c.Do == DoPause)
	case DoCancel, DoExpire:
		err = t.cancel(c)
	case DoSkip:
		err = t.skip(v, c.Reason)
	case DoRetry:
		err = t.retry(v, c.Payload)
	case DoDiscard:
		if s := r.Steps[v.ID]; s.State != StepDead {
			err = conflict("the step %s is %s; only one whose dead letter is waited for can be given up", v.ID, s.State)
		} else {
			t.failed(v, s, OnFailure{Mode: Fail}, &Failure{Code: FailDiscarded, Message: reasonOr(c.Reason, "its dead letter was discarded")})
		}
	default:
		err = forebay.Errorf(forebay.CodeInvalid, "", "%q is no command; pause, resume, cancel, skip, retry and discard are", c.Do)
	}
	if err != nil {
		return Effects{}, err
	}
	t.settle()
	return t.Effects, nil
}

func conflict(format string, args ...any) error {
	return forebay.Errorf(forebay.CodeConflict, "", format, args...)
}

func reasonOr(reason, other string) string {
	if reason == "" {
		return other
	}
	return reason
}

func (t *turn) pause(on bool) error {
	if t.r.State.Final() {
		return conflict("the run has ended: it is %s", t.r.State)
	}
	t.r.Paused = on
	return nil
}

func (t *turn) cancel(c Command) error {
	r := t.r
	if r.State.Final() || r.State == RunUndoing {
		return conflict("the run is %s; only one that runs can be cancelled", r.State)
	}
	code, text := FailCancelled, reasonOr(c.Reason, "cancelled on request")
	if c.Do == DoExpire {
		code, text = FailTimeout, "the run took longer than its timeout, "+days(t.p.Timeout)
	}
	r.State, r.Paused, r.NoUndo = RunFailing, false, c.NoUndo
	r.Stopped = c.Do == DoCancel
	r.Failure = &Failure{Code: code, Message: text}
	for _, v := range t.p.steps { // also what fails may no longer take its time
		if s := r.Steps[v.ID]; s.State == StepSent && !s.Asked {
			s.Asked = true
			t.stop(v, s)
		}
	}
	return nil
}

func (t *turn) skip(v *vertex, reason string) error {
	s := t.r.Steps[v.ID]
	undone := t.anyStep(func(s *StepRun) bool { return s.Undo != "" })
	switch {
	case s.State == StepCompleted || s.State == StepSkipped:
		return conflict("the step %s is %s already", v.ID, s.State)
	case s.Went != "":
		return conflict("the step %s has failed, and the run went on at %s", v.ID, s.Went)
	case t.r.State == RunCompleted || t.r.State == RunUndoing || t.r.Stopped || undone:
		return conflict("the run is %s; skip a step before its compensations run, or retry it from a step", t.r.State)
	}
	t.stop(v, s)
	s.State, s.Taken, s.Error = StepSkipped, true, &Failure{Code: "skipped", Message: reasonOr(reason, "skipped by hand")}
	t.mend()
	return nil
}

// retry begins a further round from a step, or from whatever keeps the run from
// having completed.
func (t *turn) retry(from *vertex, payload json.RawMessage) error {
	r := t.r
	if r.State == RunFailing || r.State == RunUndoing {
		return conflict("the run is %s; it can be retried when it has ended", r.State)
	}
	if payload != nil && (from == nil || !json.Valid(payload) || len(payload) > t.p.Context) {
		return forebay.Errorf(forebay.CodeInvalid, "", "a payload is JSON for one step, of at most %d bytes", t.p.Context)
	}
	again := map[int]bool{}
	for _, v := range t.p.steps {
		s := r.Steps[v.ID]
		// Also from a step on: what has failed elsewhere would stay so in a run that completes.
		bad := s.State == StepFailed && s.Went == "" || s.State == StepCancelled || from == nil && s.State == StepDead
		if bad || v == from || s.Undo != "" {
			for _, n := range v.after {
				again[n] = true
			}
		}
	}
	if len(again) == 0 && r.State != RunFailed {
		return conflict("the run is %s, and no step of it has failed", r.State)
	}
	t.reopen()
	r.Paused = false
	t.again(slices.Sorted(maps.Keys(again)))
	if payload != nil {
		r.Steps[from.ID].Payload = payload
	}
	return nil
}
