package runner

import (
	"context"
	"encoding/json"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
)

// Summary is a run in a list.
type Summary struct {
	ID       string        `json:"id"`
	Flow     string        `json:"flow"`
	Version  int           `json:"version"`
	State    flow.RunState `json:"state"`
	Paused   bool          `json:"paused,omitempty"`
	Started  time.Time     `json:"started"`
	Finished time.Time     `json:"finished,omitzero"`
	Failure  *flow.Failure `json:"failure,omitempty"`
}

// Query says which runs are listed. Zero fields hold for all.
type Query struct {
	Flow   string
	States []forebay.State // of the runs' jobs: delayed while they go on
	After  string          // Next of the page before
	Limit  int
}

// Page is some runs: those that go on, newest first, then those that have failed, then
// those that have ended otherwise.
type Page struct {
	Runs []Summary
	Next string // empty: this is the last
}

// List lists runs whose jobs the ledger keeps.
func (r *Runner) List(ctx context.Context, q Query) (Page, error) {
	f := engine.JobFilter{Queue: r.cfg.Queue, Kind: KindRun, States: q.States}
	if q.Flow != "" {
		f.Tags = []string{tagOf(q.Flow)}
	}
	jobs, err := r.b.Jobs(ctx, engine.JobQuery{Filter: f, After: q.After, Limit: q.Limit})
	if err != nil {
		return Page{}, err
	}
	page := Page{Runs: make([]Summary, len(jobs.Jobs)), Next: jobs.Next}
	for i := range jobs.Jobs {
		if page.Runs[i], err = r.summary(ctx, &jobs.Jobs[i]); err != nil {
			return Page{}, err
		}
	}
	return page, nil
}

// tagOf is on all jobs of a flow's runs.
func tagOf(name string) string { return "flow:" + name }

// summary tells of a run what its job does, and while it goes on what its state does.
func (r *Runner) summary(ctx context.Context, j *forebay.Job) (Summary, error) {
	name, number := flowOf(&j.Message)
	s := Summary{ID: j.ID, Flow: name, Version: number, State: flow.RunRunning, Started: j.SentAt, Finished: j.FinishedAt}
	switch j.State {
	case forebay.StateCompleted:
		s.State = flow.RunCompleted
	case forebay.StateCancelled:
		s.State, s.Failure = flow.RunCancelled, failure(j.Cause)
	case forebay.StateDead, forebay.StateExpired:
		s.State, s.Failure = flow.RunFailed, failure(j.Cause)
		s.Failure.Step = j.Cause.Detail["step"]
	default:
		d, err := r.b.Document(ctx, collectionRun, j.ID)
		if missing(err) {
			return s, nil
		}
		now := state{}
		if err == nil && json.Unmarshal(d.Value, &now) == nil && now.Run != nil {
			s.State, s.Paused, s.Failure = now.State, now.Paused, now.Failure
		}
		return s, err
	}
	return s, nil
}

// Plan gives a version of a flow as it is run, 0 for the latest.
func (r *Runner) Plan(ctx context.Context, name string, number int) (*flow.Plan, error) {
	number, err := r.resolve(ctx, name, number)
	if err != nil {
		return nil, err
	}
	v, err := r.version(ctx, name, number)
	if err != nil {
		return nil, err
	}
	return v.plan, nil
}

// Latest is the number of a flow's newest version.
func (r *Runner) Latest(ctx context.Context, name string) (int, error) {
	return r.resolve(ctx, name, 0)
}
