package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
)

// FlowHeat is how long the steps of a flow took in many runs, and how often they failed.
type FlowHeat struct {
	Runs  int        `json:"runs" doc:"That were looked at: the newest."`
	Since time.Time  `json:"since"`
	More  bool       `json:"more,omitempty" doc:"There are more in that time than were looked at."`
	Steps []StepHeat `json:"steps" nullable:"false" doc:"Those that have jobs, in the order of the file."`
}

// StepHeat is one step of it. Times are of jobs that have ended.
type StepHeat struct {
	ID         string  `json:"id"`
	Count      int     `json:"count" doc:"Runs in which its job has ended."`
	Failed     int     `json:"failed" doc:"Of these, it failed for good in so many."`
	Retried    int     `json:"retried" doc:"An attempt failed in so many."`
	P50Seconds float64 `json:"p50Seconds" doc:"Of its last attempt."`
	P95Seconds float64 `json:"p95Seconds"`
	WaitP95    float64 `json:"waitP95Seconds" doc:"From when it could begin to its attempt, of those that needed one only."`
}

// Bounds of what is looked at.
const (
	heatRuns = 200
	heatJobs = 4000
)

func (a *API) heatRoutes(h huma.API) {
	op := operation(http.MethodGet, "/api/flows/{name}/heat", "flow-heat", "Tell how long the steps of a flow took in its newest runs, and how often they failed")
	huma.Register(h, op, func(ctx context.Context, in *struct {
		OneFlow
		Since Moment `query:"since" doc:"Only runs that began after it: a time, or a duration back from now; absent: 24h."`
		Limit int    `query:"limit" minimum:"1" maximum:"200" default:"200" doc:"So many runs at most."`
	}) (*answer[FlowHeat], error) {
		return reply(a.flowHeat(ctx, in.Name, in.Since, in.Limit))
	})
}

// timed is what was measured of a step.
type timed struct {
	StepHeat
	took, waited []float64
}

func (a *API) flowHeat(ctx context.Context, name string, since Moment, limit int) (FlowHeat, error) {
	v := FlowHeat{Steps: []StepHeat{}}
	if a.cfg.Flows == nil {
		return v, noFlows()
	}
	if v.Since = since.At; v.Since.IsZero() {
		v.Since = a.cfg.Now().Add(-cmp.Or(since.In, 24*time.Hour))
	}
	plan, err := a.cfg.Flows.Plan(ctx, name, 0)
	if err != nil {
		return v, err
	}
	steps := map[string]*timed{}
	jobs := 0
	for _, state := range []flow.RunState{flow.RunRunning, flow.RunFailed, flow.RunCompleted} {
		page, err := a.cfg.Flows.List(ctx, runner.Query{Flow: name, States: runStates(string(state)), Limit: limit})
		if err != nil {
			return v, err
		}
		v.More = v.More || page.Next != ""
		for _, r := range page.Runs {
			if r.Started.Before(v.Since) || v.Runs >= limit || jobs > heatJobs {
				v.More = v.More || !r.Started.Before(v.Since)
				continue
			}
			n, err := a.heatOf(ctx, r.ID, steps)
			if err != nil && forebay.CodeOf(err) != forebay.CodeNotFound {
				return v, err
			}
			v.Runs++
			jobs += n
		}
	}
	for i := range plan.Steps {
		if s := steps[plan.Steps[i].ID]; s != nil {
			s.P50Seconds, s.P95Seconds, s.WaitP95 = quantile(s.took, 0.5), quantile(s.took, 0.95), quantile(s.waited, 0.95)
			v.Steps = append(v.Steps, s.StepHeat)
		}
	}
	return v, nil
}

// heatOf adds what a run took, and tells how many jobs were looked at.
func (a *API) heatOf(ctx context.Context, id string, steps map[string]*timed) (n int, err error) {
	r, err := a.cfg.Flows.Get(ctx, id)
	if err != nil {
		return 0, err
	}
	for step, s := range r.Steps {
		if s.State == flow.StepBlocked || s.Each != nil {
			continue
		}
		j, err := a.cfg.Broker.Job(ctx, flow.JobID(id, step, s.Round, flow.NoItem, false))
		if n++; forebay.CodeOf(err) == forebay.CodeNotFound {
			continue
		} else if err != nil {
			return n, err
		}
		if !j.State.Final() || j.StartedAt.IsZero() {
			continue
		}
		t := steps[step]
		if t == nil {
			t = &timed{StepHeat: StepHeat{ID: step}}
			steps[step] = t
		}
		t.Count++
		if j.State == forebay.StateDead || s.Error != nil {
			t.Failed++
		}
		if j.Attempts > 1 || j.State == forebay.StateCompleted && j.Attempts > 0 {
			t.Retried++
		}
		t.took = append(t.took, j.FinishedAt.Sub(j.StartedAt).Seconds())
		if j.Attempts == 0 {
			due := j.SentAt
			if j.NotBefore.After(due) {
				due = j.NotBefore
			}
			t.waited = append(t.waited, max(0, j.StartedAt.Sub(due).Seconds()))
		}
	}
	return n, nil
}

func quantile(all []float64, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

// FlowHeat tells how long the steps of a flow took in its newest runs.
func (c *Client) FlowHeat(ctx context.Context, name, since string) (v FlowHeat, err error) {
	return v, c.call(ctx, http.MethodGet, flowPathOf(name)+"/heat"+query("since", since), nil, &v)
}
