package flow

import (
	"encoding/json"
	"slices"
	"time"
)

// MaxTried is how much a dry run sends before it is cut short: a loop over a long list
// shows what it does long before.
const MaxTried = 1000

// Trial says how what a dry run would send ends. What it does not name completes: with
// null, and an approval with yes.
type Trial struct {
	Outputs  map[string]json.RawMessage // by step: what its job gives, or what it waits for brings
	Failures map[string]Failure         // steps whose jobs fail for good
	TimedOut []string                   // waits for which nothing comes
}

// Tried is what a run would do.
type Tried struct {
	Run  *Run
	Sent []Send // in an order in which it might be
	Cut  bool   // it would send more
}

// Try runs a flow without anybody to do its steps: the decisions, expressions and
// payloads are those of a run, the ends of the jobs those of the trial. A run that waits
// for a dead letter is left there, as a real one would be.
func (p *Plan) Try(input *Input, at time.Time, trial Trial) Tried {
	out := Tried{Run: p.Begin("dry-run", at)}
	cancelled := map[string]bool{}
	effects := p.Advance(out.Run, input)
	for next := effects.Send; len(next) > 0; next = append(next[1:], effects.Send...) {
		d := next[0]
		if out.Cut = len(out.Sent) == MaxTried; out.Cut {
			break
		}
		out.Sent = append(out.Sent, d)
		effects = Effects{}
		if d.Kind != KindEmit || d.Undo { // nobody tells of the end of an event
			effects = p.Advance(out.Run, input, trial.end(&d, cancelled[d.ID]))
		}
		for _, id := range slices.Concat(effects.Cancel, effects.CancelRuns) {
			cancelled[id] = true
		}
	}
	return out
}

// end is how a job ends.
func (t *Trial) end(d *Send, cancelled bool) Event {
	e := Event{Step: d.Step, Round: d.Round, Item: d.Item, Undo: d.Undo, Type: EventCompleted}
	why, fails := t.Failures[d.Step]
	switch {
	case cancelled:
		e.Type = EventCancelled
	case d.Undo:
	case d.Kind == KindDead:
		e.Type, e.Error = EventFailed, &Failure{Code: "dead_letter", Message: d.Reason}
	case d.Kind == KindWait && slices.Contains(t.TimedOut, d.Step):
		e.Type, e.Error = EventTimedOut, &Failure{Code: FailTimeout, Message: "what it waits for has not come in time"}
	case fails:
		e.Type, e.Error = EventFailed, &Failure{Code: why.Code, Message: why.Message}
	case t.Outputs[d.Step] != nil:
		e.Output = t.Outputs[d.Step]
	case d.Kind == KindWait:
		e.Output = json.RawMessage(`{"approved":true}`)
	default:
		e.Output = json.RawMessage("null")
	}
	return e
}
