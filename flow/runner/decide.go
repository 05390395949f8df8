package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/worker"
)

const sideBySide = 100 // runs of one batch that are decided about at once

// Advances is what a worker of AdvanceQueue needs. A batch has what was told of many
// runs, in the order of each; what was told of one run is decided about together.
func (r *Runner) Advances() worker.BatchHandler {
	return worker.BatchFunc(func(ctx context.Context, ds []forebay.Delivery) []error {
		errs := make([]error, len(ds))
		byRun := map[string][]int{}
		var runs []string
		for i := range ds {
			run := ds[i].Headers[HeaderRun]
			if byRun[run] == nil {
				runs = append(runs, run)
			}
			byRun[run] = append(byRun[run], i)
		}
		var all errgroup.Group
		all.SetLimit(sideBySide)
		over := make([]bool, len(runs))
		for i, run := range runs {
			all.Go(func() error {
				over[i] = r.advance(ctx, run, ds, byRun[run], errs)
				return nil
			})
		}
		all.Wait()
		r.wake(ctx, runs, over, func(run string, err error) {
			for _, i := range byRun[run] {
				errs[i] = err
			}
		})
		return errs
	})
}

// advance decides about one run, by the deliveries of these places, and tells whether it
// is over. It may be repeated, and crash anywhere.
func (r *Runner) advance(ctx context.Context, run string, ds []forebay.Delivery, places []int, errs []error) (over bool) {
	var told []advance
	repeated := false
	for _, i := range places {
		var a advance
		if err := json.Unmarshal(ds[i].Payload, &a); err != nil || run == "" {
			errs[i] = forebay.Permanent(fmt.Errorf("the message is not readable: %v", err))
			continue
		}
		told = append(told, a)
		repeated = repeated || ds[i].Deliveries > 1
	}
	err := errors.New("others change the run again and again")
	for range maxTries {
		var again error
		if over, again = r.decide(ctx, run, told, repeated); forebay.CodeOf(again) != forebay.CodeConflict {
			err = again
			break
		}
	}
	for _, i := range places {
		if errs[i] == nil {
			errs[i] = err // those behind a failure too: the order stays
		}
	}
	return over && err == nil
}

// decide makes one decision of all that was told of a run, and tells whether it is over.
func (r *Runner) decide(ctx context.Context, run string, told []advance, repeated bool) (over bool, err error) {
	if len(told) == 0 {
		return false, nil
	}
	r.take(run)
	r.takeEnd(run)
	s, v, input, effects, err := r.stateOf(ctx, run, told)
	if s == nil || err != nil { // nil: it has left by its retention, or never was
		return false, err
	}
	before := s.State
	for _, a := range told {
		more, err := r.effects(s, v, input, &a)
		switch {
		case forebay.CodeOf(err) == forebay.CodeConflict, missing(err): // a command that came too late
		case err != nil:
			return false, err
		default:
			effects = joined(effects, more)
		}
	}
	if err := r.carryOut(ctx, s, v, &effects); err != nil {
		return false, err
	}
	if err := r.save(ctx, s); err != nil {
		return false, err
	}
	r.unwait(ctx, s, v, told)
	if begunAgain(told) {
		if err := r.forget(ctx, s); err != nil {
			return false, err
		}
	}
	// The job of a run that has failed is dead, and stays so until the run goes on.
	if effects.Reopened || s.State != flow.RunFailed && (before.Final() || repeated) {
		if err := r.revive(ctx, s); err != nil {
			return false, err
		}
	}
	if s.State.Final() {
		r.keepEnd(s, v)
	}
	return s.State.Final(), nil
}

// stateOf loads the state of a run, or makes it.
func (r *Runner) stateOf(ctx context.Context, run string, told []advance) (s *state, v *version, input *flow.Input, e flow.Effects, err error) {
	if c := r.leave(run); c != nil { // else, if there is a state all the same, storing is refused
		return c.state, c.v, c.input, e, nil
	}
	s, v, input, err = r.load(ctx, run)
	if missing(err) {
		return r.begin(ctx, run, told)
	}
	if err == nil && slices.ContainsFunc(told, func(a advance) bool { return v.behind(s, a.Events) }) {
		e, err = r.recover(ctx, s, v, input)
	}
	return s, v, input, e, err
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

// behind tells whether something is told of a step that was not sent as far as the
// state knows: a chain was at work when the state was made.
func (v *version) behind(s *state, events []flow.Event) bool {
	return s.State == flow.RunRunning && slices.ContainsFunc(events, func(e flow.Event) bool {
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

// begin makes the state of a run that has none yet, from the ledger. nil: there is no such run, or it has ended.
func (r *Runner) begin(ctx context.Context, run string, told []advance) (*state, *version, *flow.Input, flow.Effects, error) {
	none := flow.Effects{}
	j, err := r.b.Job(ctx, run)
	if missing(err) || err == nil && (j.State.Final() && told[0].Command == nil || j.Kind != KindRun) {
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
	if j.Headers[headerChain] == "" { // nothing can have happened yet
		return s, v, input, v.plan.Advance(s.Run, input), nil
	}
	effects, err := r.recover(ctx, s, v, input)
	return s, v, input, effects, err
}
