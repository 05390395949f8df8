package runner

import (
	"context"
	"slices"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
)

// begunAgain tells whether somebody has asked for a step to be done again, or without.
func begunAgain(told []advance) bool {
	return slices.ContainsFunc(told, func(a advance) bool {
		return a.Command != nil && (a.Command.Do == flow.DoRetry || a.Command.Do == flow.DoSkip)
	})
}

// forget discards the dead letters of jobs whose steps were begun again, or skipped by
// hand: replayed, they would do once more what is done. It follows from the state alone,
// so that it can be repeated. Those of single items of a for_each stay.
func (r *Runner) forget(ctx context.Context, s *state) error {
	for id, step := range s.Steps {
		rounds := step.Round // that are over
		if step.State == flow.StepSkipped && step.Taken {
			rounds++
		}
		for round := range rounds {
			job := flow.JobID(s.ID, id, round, flow.NoItem, false)
			if err := r.discard(ctx, job, "the run goes on without it: its step was begun again, or skipped"); err != nil {
				return err
			}
		}
	}
	return nil
}

// discard drops the dead letter of a job, if there is one.
func (r *Runner) discard(ctx context.Context, job, reason string) error {
	letters, err := r.b.Dead(ctx, engine.DeadQuery{ID: job})
	if err != nil || len(letters) == 0 {
		return err
	}
	seqs := make([]int64, len(letters))
	for i := range letters {
		seqs[i] = letters[i].Seq
	}
	_, err = r.b.DiscardDead(ctx, seqs, reason)
	return err
}

// replay lets a run that has failed go on, for somebody replays its dead letter: that is
// a retry of it. The dead letters of its steps leave first, or who replays those too
// would do a step twice. Where one of them was replayed before, the run goes on by that.
func (r *Runner) replay(ctx context.Context, m *forebay.Message) error {
	s, _, _, err := r.load(ctx, m.ID)
	if missing(err) {
		return conflict("the state of the run %s has left by its retention; start a new one with its input", m.ID)
	}
	if err != nil || s.State != flow.RunFailed { // it goes on already
		return err
	}
	var jobs []string
	for id, step := range s.Steps {
		if step.State != flow.StepFailed || step.Each != nil {
			continue
		}
		job := flow.JobID(s.ID, id, step.Round, flow.NoItem, false)
		j, err := r.b.Job(ctx, job)
		switch {
		case missing(err):
		case err != nil:
			return err
		case !j.State.Final():
			return nil
		default:
			jobs = append(jobs, job)
		}
	}
	for _, job := range jobs {
		if err := r.discard(ctx, job, "the dead letter of its run is replayed"); err != nil {
			return err
		}
	}
	err = r.Do(ctx, s.ID, flow.Command{Do: flow.DoRetry})
	if forebay.CodeOf(err) == forebay.CodeConflict { // it has gone on meanwhile, by one of its steps
		if now, _, _, again := r.load(ctx, s.ID); again == nil && now.State != flow.RunFailed {
			return nil
		}
	}
	return err
}

// alerted tells whether the failure of a run is that of a step with a dead letter of its
// own, of which an alert was sent.
func (r *Runner) alerted(ctx context.Context, s *state) bool {
	if s.Failure == nil || s.Failure.Step == "" || s.Steps[s.Failure.Step] == nil {
		return false
	}
	step := s.Steps[s.Failure.Step]
	j, err := r.b.Job(ctx, flow.JobID(s.ID, s.Failure.Step, step.Round, flow.NoItem, false))
	return err == nil && j.State == forebay.StateDead
}
