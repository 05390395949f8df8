package schedule

import (
	"context"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
)

// maxRuns bounds the jobs run by hand that may be pending.
const maxRuns = 10

// RunNow adds a job of the schedule at once, beside its ticks: also when it is paused,
// and it counts for no limit. Its Overlap holds; CodeConflict: the former job has not
// finished. id makes a repetition harmless; empty: one is made.
func (s *Scheduler) RunNow(ctx context.Context, name, id string) (job string, err error) {
	if id == "" {
		u, err := uuid.NewV7()
		if err != nil {
			return "", forebay.Errorf(forebay.CodeInternal, "schedule: make an id", "%w", err)
		}
		id = u.String()
	}
	job = runID(name, id)
	v, err := s.changeOne(ctx, name, func(st *stored) error {
		p := &plan{Definition: st.Definition}
		last, err := s.former(ctx, p, &st.State)
		one := Pending{Job: job, At: s.now()}
		switch {
		case err != nil || st.State.LastJob == job:
			return err
		case last.state != "" && p.Overlap == OverlapSkip:
			return forebay.Errorf(forebay.CodeConflict, "", "the former job %s of the schedule %q is still %s", last.job, name, last.state)
		case len(st.State.Pending) >= maxRuns:
			return forebay.Errorf(forebay.CodeUnavailable, "", "the schedule %q has %d jobs that could not be sent yet", name, len(st.State.Pending))
		case p.Overlap == OverlapCancel && last.state != "":
			one.Cancel = last.job
		}
		st.State.Pending = append(st.State.Pending[:len(st.State.Pending):len(st.State.Pending)], one)
		st.State.LastJob = job
		return nil
	})
	if err != nil {
		return "", err
	}
	p, err := s.zones.plan(v.Definition, v.Since)
	if err != nil {
		return "", err
	}
	return job, s.sendRun(ctx, &work{name: name, rev: v.Rev, plan: p, state: v.State, resend: true}, job)
}

// sendRun sends one job that is pending. What cannot be sent now Run sends later.
func (s *Scheduler) sendRun(ctx context.Context, w *work, job string) error {
	for _, one := range w.state.Pending {
		if one.Job != job {
			continue
		}
		w.state.Pending = []Pending{one}
		s.send(ctx, []*work{w})
		s.confirm(ctx, w)
		for _, o := range w.outcomes {
			if o.code != "" {
				return forebay.Errorf(forebay.Code(o.code), "", "%s", o.reason)
			}
		}
	}
	return w.err
}
