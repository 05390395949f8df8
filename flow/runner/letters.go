package runner

import (
	"context"
	"slices"

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
			letters, err := r.b.Dead(ctx, engine.DeadQuery{ID: flow.JobID(s.ID, id, round, flow.NoItem, false)})
			if err != nil {
				return err
			}
			var seqs []int64
			for i := range letters {
				seqs = append(seqs, letters[i].Seq)
			}
			if len(seqs) == 0 {
				continue
			}
			if _, err := r.b.DiscardDead(ctx, seqs, "the run goes on without it: its step was begun again, or skipped"); err != nil {
				return err
			}
		}
	}
	return nil
}
