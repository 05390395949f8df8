package flow

import (
	"fmt"
	"strings"
)

// Reason is one thing that a run waits for.
type Reason struct {
	Step string `json:"step,omitempty"`
	Job  string `json:"job,omitempty"` // whose end would let it go on
	Text string `json:"text"`
}

// Waiting names what a run waits for. It is empty exactly when the run has ended.
func (p *Plan) Waiting(r *Run) (all []Reason) {
	if r.State.Final() {
		return nil
	}
	if r.Paused {
		all = append(all, Reason{Text: "it is paused; resume lets it go on"})
	}
	for _, v := range p.steps {
		s := r.Steps[v.ID]
		id := JobID(r.ID, v.ID, s.Round, NoItem, false)
		switch {
		case s.Undo == UndoSent:
			all = append(all, Reason{v.ID, JobID(r.ID, v.ID, s.Round, NoItem, true), "its compensation runs"})
		case s.State == StepDead:
			all = append(all, Reason{v.ID, id, fmt.Sprintf("its job is a dead letter (%s); replay or discard it, or skip the step", s.Error.Message)})
		case s.State == StepSent:
			all = append(all, Reason{v.ID, id, v.waitsFor(s)})
		case s.State == StepBlocked && r.State == RunRunning && !r.Paused:
			all = append(all, Reason{Step: v.ID, Text: "it waits for " + p.open(v, r)})
		}
	}
	return all
}

func (v *vertex) waitsFor(s *StepRun) string {
	switch {
	case s.Each != nil:
		return fmt.Sprintf("%d of %d items have ended, %d are in flight", s.Each.Done+s.Each.Failed, s.Each.Total, s.Each.InFlight())
	case v.Kind == KindWait && v.Wait.Approval && v.Wait.Role != "":
		return fmt.Sprintf("an approval by %s, for up to %s", v.Wait.Role, days(v.Wait.Timeout))
	case v.Kind == KindWait && v.Wait.Approval:
		return fmt.Sprintf("an approval, for up to %s", days(v.Wait.Timeout))
	case v.Kind == KindWait:
		return fmt.Sprintf("an event %s, for up to %s", v.Wait.Event, days(v.Wait.Timeout))
	case v.Kind == KindDelay:
		return "its time has not come"
	case v.Kind == KindFlow:
		return "the run of " + v.Flow.Name
	}
	return "its job has not ended"
}

// open names the steps that a blocked one waits for.
func (p *Plan) open(v *vertex, r *Run) string {
	var ids []string
	for _, e := range v.in {
		if id := p.steps[e.from].ID; !r.Steps[id].State.Final() {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, ", ")
}
