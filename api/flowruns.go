package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/stream"
)

// FlowRun is a run as it is now.
type FlowRun struct {
	RunID      string          `json:"runId"`
	Flow       string          `json:"flow"`
	Version    int             `json:"version"`
	State      flow.RunState   `json:"state" enum:"running,failing,undoing,completed,failed,cancelled"`
	Paused     bool            `json:"paused,omitempty"`
	StartedAt  time.Time       `json:"startedAt"`
	FinishedAt time.Time       `json:"finishedAt,omitzero"`
	Input      json.RawMessage `json:"input,omitempty"`
	Output     json.RawMessage `json:"output,omitempty" doc:"Completed: what it gave."`
	Failure    *RunFailure     `json:"failure,omitempty" doc:"Failed, or about to: why, and of which step."`
	Waiting    []RunReason     `json:"waiting" nullable:"false" doc:"What it waits for, each with its step and job; empty exactly when it has ended."`
	Steps      []RunStep       `json:"steps" nullable:"false" doc:"In the order of the file."`
	Job        *Job            `json:"job,omitempty" doc:"The run's own job, without its data; absent: it has left by its retention."`
}

// RunStep is a step of a run.
type RunStep struct {
	ID       string          `json:"id"`
	Title    string          `json:"title,omitempty"`
	Kind     flow.Kind       `json:"kind" enum:"use,branch,parallel,join,delay,wait,flow,emit,dead_letter"`
	Does     string          `json:"does"`
	State    flow.StepState  `json:"state" enum:"blocked,sent,dead,completed,skipped,failed,cancelled"`
	Round    int             `json:"round,omitempty" doc:"How often it has begun anew."`
	Order    int             `json:"order,omitempty" doc:"As which step of the run it completed, from 1."`
	Output   json.RawMessage `json:"output,omitempty"`
	Omitted  int             `json:"omitted,omitempty" doc:"Bytes of an output for which the run had no room; the job has it."`
	Error    *RunFailure     `json:"error,omitempty" doc:"Why it failed, or was skipped."`
	WentTo   string          `json:"wentTo,omitempty" doc:"Failed, and the run went on there."`
	Chose    []string        `json:"chose,omitempty" doc:"Branch: what it chose."`
	Items    *RunItems       `json:"items,omitempty" doc:"For each: its items."`
	WaitsFor string          `json:"waitsFor,omitempty"`
	Undo     flow.UndoState  `json:"undo,omitempty" enum:"sent,done,failed" doc:"Its compensation."`
	Job      *Job            `json:"job,omitempty" doc:"Of its last round, without data and result: attempts, failures, progress, times."`
	RunID    string          `json:"runId,omitempty" doc:"Of the flow that it runs."`
}

// RunItems counts the items of a for each.
type RunItems struct {
	Total    int         `json:"total"`
	Done     int         `json:"done"`
	Failed   int         `json:"failed"`
	InFlight int         `json:"inFlight"`
	First    *RunFailure `json:"first,omitempty" doc:"The first failure."`
}

// RunInfo is a run in a list.
type RunInfo struct {
	RunID      string        `json:"runId"`
	Flow       string        `json:"flow"`
	Version    int           `json:"version"`
	State      flow.RunState `json:"state" enum:"running,failing,undoing,completed,failed,cancelled"`
	Paused     bool          `json:"paused,omitempty"`
	StartedAt  time.Time     `json:"startedAt"`
	FinishedAt time.Time     `json:"finishedAt,omitzero"`
	Failure    *RunFailure   `json:"failure,omitempty"`
}

// RunList is one page of runs: those that go on, newest first, then failed ones, then
// those that have ended otherwise.
type RunList struct {
	Items []RunInfo `json:"items" nullable:"false"`
	Next  string    `json:"next,omitempty" doc:"after= of the next page, which may be empty; absent: this is the last."`
}

// StartRun is a run that is wanted.
type StartRun struct {
	Input   json.RawMessage `json:"input,omitempty"`
	Version int             `json:"version,omitempty" minimum:"0" doc:"Absent: the latest."`
	ID      string          `json:"id,omitempty" maxLength:"48" doc:"Of the run: a second start with it is the same run. Absent: a new one."`
	Owner   string          `json:"owner,omitempty"`
	Tenant  string          `json:"tenant,omitempty"`
	Tags    []string        `json:"tags,omitempty"`
}

// StartedRun is what became of it.
type StartedRun struct {
	RunID     string `json:"runId"`
	Flow      string `json:"flow"`
	Version   int    `json:"version"`
	Duplicate bool   `json:"duplicate,omitempty" doc:"There was a run of this id already."`
	StreamURL string `json:"streamUrl"`
}

// OneRun is a run in a path. Runs of sub-flows have ids with slashes, written as %2F.
type OneRun struct {
	ID string `path:"id" maxLength:"512"`
}

// RunFailure is why something of a run failed.
type RunFailure flow.Failure

// RunReason is one thing that a run waits for.
type RunReason flow.Reason

func reasonsOf(rs []flow.Reason) []RunReason {
	all := []RunReason{}
	for _, r := range rs {
		all = append(all, RunReason(r))
	}
	return all
}

const runsPath = "/api/runs"

// RunsQuery says which runs are listed. It is exported as OneJob is.
type RunsQuery struct {
	State string `query:"state" enum:"running,completed,failed,cancelled" doc:"Running: those that have not ended."`
	After string `query:"after" maxLength:"1024" doc:"Next of the page before."`
	Limit int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

func (a *API) runRoutes(h huma.API) {
	start := operation(http.MethodPost, "/api/flows/{name}/runs", "start-run", "Start a run of a flow")
	start.DefaultStatus = http.StatusAccepted
	start.MaxBodyBytes = maxJobBody
	start.Description = "The run is stored durably when the answer comes. An Idempotency-Key makes a repetition harmless."
	huma.Register(h, start, func(ctx context.Context, in *struct {
		OneFlow
		Body StartRun
	}) (*struct {
		Location string `header:"Location"`
		Body     StartedRun
	}, error) {
		v, err := a.startRun(ctx, in.Name, in.Body)
		if err != nil {
			return nil, problemOf(err)
		}
		return &struct {
			Location string `header:"Location"`
			Body     StartedRun
		}{runPathOf(v.RunID), v}, nil
	})
	huma.Register(h, operation(http.MethodGet, "/api/flows/{name}/runs", "list-flow-runs", "List the runs of a flow"),
		func(ctx context.Context, in *struct {
			OneFlow
			RunsQuery
		}) (*answer[RunList], error) {
			return reply(a.listRuns(ctx, in.Name, &in.RunsQuery))
		})
	huma.Register(h, operation(http.MethodGet, runsPath, "list-runs", "List the runs of all flows"),
		func(ctx context.Context, in *RunsQuery) (*answer[RunList], error) {
			return reply(a.listRuns(ctx, "", in))
		})
	huma.Register(h, operation(http.MethodGet, runsPath+"/{id}", "get-run", "Show a run: its steps, and what it waits for"),
		func(ctx context.Context, in *OneRun) (*answer[FlowRun], error) {
			return reply(a.getRun(ctx, in.ID))
		})
	a.runActRoutes(h)
	a.runStreamDocs(h)
}

func runPathOf(id string) string { return runsPath + "/" + url.PathEscape(id) }

// startRun starts a run. With an idempotency key its id is made of that.
func (a *API) startRun(ctx context.Context, name string, in StartRun) (StartedRun, error) {
	if a.cfg.Flows == nil {
		return StartedRun{}, noFlows()
	}
	m := forebay.Message{ID: in.ID}
	derived := deriveID(ctx, &m, 0)
	s, err := a.cfg.Flows.Start(ctx, runner.Start{
		Flow: name, Version: in.Version, Input: in.Input, ID: m.ID, Owner: in.Owner, Tenant: in.Tenant, Tags: in.Tags,
	})
	if err != nil {
		return StartedRun{}, err
	}
	a.cfg.Logger.Info("api: run: start", "flow", name, "version", s.Version, "run", s.Run, "duplicate", s.Duplicate, "by", caller(ctx))
	return StartedRun{RunID: s.Run, Flow: name, Version: s.Version, Duplicate: s.Duplicate && !derived, StreamURL: runPathOf(s.Run) + streamSuffix}, nil
}

// runStates are the states of jobs of runs by how the runs are.
func runStates(state string) []forebay.State {
	switch flow.RunState(state) {
	case flow.RunRunning:
		return []forebay.State{forebay.StateWaiting, forebay.StateDelayed, forebay.StateActive}
	case flow.RunCompleted:
		return []forebay.State{forebay.StateCompleted}
	case flow.RunFailed:
		return []forebay.State{forebay.StateDead, forebay.StateExpired}
	case flow.RunCancelled:
		return []forebay.State{forebay.StateCancelled}
	}
	return nil
}

func (a *API) listRuns(ctx context.Context, name string, in *RunsQuery) (RunList, error) {
	list := RunList{Items: []RunInfo{}}
	if a.cfg.Flows == nil {
		return list, noFlows()
	}
	if name != "" { // an unknown flow is told so
		if _, err := a.cfg.Flows.Latest(ctx, name); err != nil {
			return list, err
		}
	}
	page, err := a.cfg.Flows.List(ctx, runner.Query{Flow: name, States: runStates(in.State), After: in.After, Limit: in.Limit})
	for _, r := range page.Runs {
		if ok, err := a.holdsFlow(ctx, r.Flow, r.Version); !ok {
			if err != nil && forebay.CodeOf(err) != forebay.CodeNotFound {
				return list, err
			}
			continue
		}
		list.Items = append(list.Items, RunInfo{r.ID, r.Flow, r.Version, r.State, r.Paused, r.Started, r.Finished, (*RunFailure)(r.Failure)})
	}
	list.Next = page.Next
	return list, err
}

func (a *API) getRun(ctx context.Context, id string) (FlowRun, error) {
	if a.cfg.Flows == nil {
		return FlowRun{}, noFlows()
	}
	r, err := a.cfg.Flows.Get(ctx, id)
	if err != nil {
		return FlowRun{}, err
	}
	plan, err := a.cfg.Flows.Plan(ctx, r.Flow, r.Version)
	if err != nil {
		return FlowRun{}, err
	}
	v := FlowRun{
		RunID: r.ID, Flow: r.Flow, Version: r.Version, State: r.State, Paused: r.Paused, StartedAt: r.Started, Input: r.Input, Output: r.Output,
		Failure: (*RunFailure)(r.Failure), Waiting: reasonsOf(r.Waiting), Steps: make([]RunStep, len(plan.Steps)),
	}
	if v.Job, err = a.jobIfThere(ctx, id); err != nil {
		return v, err
	}
	if v.Job != nil {
		v.FinishedAt, v.Job.Result = v.Job.FinishedAt, nil
	}
	for i := range plan.Steps {
		if v.Steps[i], err = a.runStep(ctx, &r, &plan.Steps[i]); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (a *API) jobIfThere(ctx context.Context, id string) (*Job, error) {
	j, err := a.cfg.Broker.Job(ctx, id)
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v := stream.JobOf(&j)
	return &v, nil
}

func (a *API) runStep(ctx context.Context, r *runner.View, d *flow.Step) (RunStep, error) {
	s := r.Steps[d.ID]
	v := stepOfRun(d, s, reasonsOf(r.Waiting))
	switch d.Kind {
	case flow.KindBranch, flow.KindParallel, flow.KindJoin, flow.KindEmit:
		return v, nil
	}
	if s.State == flow.StepBlocked || s.Each != nil {
		return v, nil
	}
	id := flow.JobID(r.ID, d.ID, s.Round, flow.NoItem, false)
	if d.Kind == flow.KindFlow {
		v.RunID = id
	}
	var err error
	if v.Job, err = a.jobIfThere(ctx, id); v.Job != nil {
		if v.Output == nil { // no other step needs it, so the run does not keep it
			v.Output = v.Job.Result
		}
		v.Job.Result = nil
	}
	return v, err
}

// stepOfRun is what the run itself knows of a step.
func stepOfRun(d *flow.Step, s *flow.StepRun, waiting []RunReason) RunStep {
	v := RunStep{
		ID: d.ID, Title: d.Title, Kind: d.Kind, Does: d.Does(), State: s.State, Round: s.Round, Order: s.Order, Output: s.Output, Omitted: s.Omitted,
		Error: (*RunFailure)(s.Error), WentTo: s.Went, Chose: s.To, Undo: s.Undo,
	}
	if e := s.Each; e != nil {
		v.Items = &RunItems{e.Total, e.Done, e.Failed, e.InFlight(), (*RunFailure)(e.First)}
	}
	for _, w := range waiting {
		if w.Step == d.ID {
			v.WaitsFor = w.Text
		}
	}
	return v
}
