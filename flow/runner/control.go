package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/worker"
)

// Handler is what a worker of the queue of flows needs.
func (r *Runner) Handler() worker.JobHandler {
	return worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
		switch j.Kind {
		case KindAdvance:
			return nil, r.advance(ctx, j)
		case KindRun:
			return r.handleRun(ctx, j)
		case KindDelay:
			return r.Steps(worker.JobFunc(func(context.Context, *worker.Job) ([]byte, error) { return nil, nil })).HandleJob(ctx, j)
		case KindWait:
			return r.handleWait(j)
		case KindDead:
			return r.Steps(worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) {
				return nil, forebay.Permanent(forebay.Because(forebay.Cause{Code: "dead_letter"}, errors.New(j.Headers["flow-reason"])))
			})).HandleJob(ctx, j)
		}
		return nil, forebay.Permanent(fmt.Errorf("%q is no kind of the queue of flows", j.Kind))
	})
}

// arrival is the payload of a wait that has got what it waits for.
type arrival struct {
	Event    json.RawMessage `json:"event,omitempty"`
	Approval *Approval       `json:"approval,omitempty"`
}

// handleWait is called when something has arrived, or the timeout.
func (r *Runner) handleWait(j *worker.Job) ([]byte, error) {
	run, e := eventOf(&j.Message)
	if e == nil {
		return nil, forebay.Permanent(errors.New("a wait of no run"))
	}
	e.Type = flow.EventCompleted
	result := waited(e, j.Payload)
	j.Follow(func(s forebay.Settlement) forebay.Settlement {
		switch s.Verdict {
		case forebay.Ack:
			return r.carry(s, run, *e, nil)
		case forebay.Release, forebay.Retry:
			return s
		}
		return r.follow(j, run, *e, s)
	})
	return result, nil
}

// waited makes of a wait's payload the event of its end, and the job's result.
func waited(e *flow.Event, payload []byte) []byte {
	var a arrival
	bad := json.Unmarshal(payload, &a)
	switch {
	case bad == nil && a.Approval != nil:
		out, _ := json.Marshal(a.Approval) // of texts and JSON that was checked
		withOutput(e, out)
		if !a.Approval.Approved {
			text := "not approved"
			if a.Approval.Comment != "" {
				text += ": " + a.Approval.Comment
			}
			e.Type, e.Error = flow.EventFailed, &flow.Failure{Code: "rejected", Message: text}
		}
		return out
	case bad == nil && len(a.Event) > 0:
		withOutput(e, a.Event)
		return a.Event
	}
	e.Type, e.Output, e.Error = flow.EventTimedOut, nil, &flow.Failure{Code: flow.FailTimeout, Message: "what it waits for has not come in time"}
	return []byte(`{"timedOut":true}`)
}

// advance decides about a run. It may be repeated, and crash anywhere.
func (r *Runner) advance(ctx context.Context, j *worker.Job) error {
	run := j.Headers[HeaderRun]
	var a advance
	if err := json.Unmarshal(j.Payload, &a); err != nil || run == "" {
		return forebay.Permanent(fmt.Errorf("the message is not readable: %w", err))
	}
	for range maxTries {
		err := r.decide(ctx, run, &a, j.Deliveries > 1)
		if forebay.CodeOf(err) != forebay.CodeConflict {
			return err
		}
	}
	return forebay.RetryAfter(r.cfg.Watch/30, errors.New("others change the run again and again"))
}

func (r *Runner) decide(ctx context.Context, run string, a *advance, repeated bool) error {
	r.take(run)
	var effects flow.Effects
	s, v, input, err := r.load(ctx, run)
	if missing(err) {
		s, v, input, effects, err = r.begin(ctx, run, a)
		if s == nil && err == nil { // it has left by its retention, or never was
			return nil
		}
	} else if err == nil && v.behind(s, a) {
		effects, err = r.recover(ctx, s, v, input)
	}
	if err != nil {
		return err
	}
	before := s.State
	more, err := r.effects(s, v, input, a)
	switch {
	case forebay.CodeOf(err) == forebay.CodeConflict, missing(err): // a command that came too late
	case err != nil:
		return err
	default:
		effects = joined(effects, more)
	}
	if err := r.carryOut(ctx, s, v, &effects); err != nil {
		return err
	}
	if err := r.save(ctx, s); err != nil {
		return err
	}
	r.unwait(ctx, s, v, a)
	if s.State.Final() {
		return r.wake(ctx, s)
	}
	if effects.Reopened || before.Final() || repeated {
		return r.revive(ctx, s)
	}
	return nil
}

// behind tells whether something is told of a step that was not sent as far as the
// state knows: a chain was at work when the state was made.
func (v *version) behind(s *state, a *advance) bool {
	return s.State == flow.RunRunning && slices.ContainsFunc(a.Events, func(e flow.Event) bool {
		st := s.Steps[e.Step]
		return st != nil && st.State == flow.StepBlocked && st.Round == e.Round
	})
}

func joined(a, b flow.Effects) flow.Effects {
	return flow.Effects{
		Send: append(a.Send, b.Send...), Cancel: append(a.Cancel, b.Cancel...), CancelRuns: append(a.CancelRuns, b.CancelRuns...),
		Drop: append(a.Drop, b.Drop...), Reopened: a.Reopened || b.Reopened,
	}
}

func (r *Runner) effects(s *state, v *version, input *flow.Input, a *advance) (flow.Effects, error) {
	switch {
	case a.Command != nil:
		return v.plan.Command(s.Run, input, *a.Command)
	case len(a.Lost) > 0:
		sends, err := v.plan.Resend(s.Run, input, a.Lost)
		return flow.Effects{Send: sends}, err
	}
	return v.plan.Advance(s.Run, input, a.Events...), nil
}

// begin makes the state of a run that has none yet: as it was told, or else from the
// ledger. nil: there is no such run, or it has ended.
func (r *Runner) begin(ctx context.Context, run string, a *advance) (*state, *version, *flow.Input, flow.Effects, error) {
	none := flow.Effects{}
	if a.Run != nil {
		v, err := r.version(ctx, a.Run.Flow, a.Run.Version)
		if err != nil {
			return nil, nil, nil, none, err
		}
		input, err := r.input(ctx, run)
		return &state{Run: a.Run}, v, input, none, err
	}
	j, err := r.b.Job(ctx, run)
	if missing(err) || err == nil && (j.State.Final() && a.Command == nil || j.Kind != KindRun) {
		return nil, nil, nil, none, nil
	}
	if err != nil {
		return nil, nil, nil, none, err
	}
	name, number := flowOf(&j.Message)
	v, err := r.version(ctx, name, number)
	if err != nil {
		return nil, nil, nil, none, err
	}
	s, input := &state{Run: v.plan.Begin(run, j.SentAt)}, r.keepInput(run, j.Payload)
	effects, err := r.recover(ctx, s, v, input)
	return s, v, input, effects, err
}
