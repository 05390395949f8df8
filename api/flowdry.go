package api

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
)

// TryFlow is a file that is run without anybody to do its steps.
type TryFlow struct {
	Source   string                     `json:"source"`
	Input    json.RawMessage            `json:"input,omitempty"`
	Outputs  map[string]json.RawMessage `json:"outputs,omitempty" doc:"By step: what its job gives, or what it waits for brings. Absent: null; an approval is given."`
	Failures map[string]TryFailure      `json:"failures,omitempty" doc:"Steps whose jobs fail for good."`
	TimedOut []string                   `json:"timedOut,omitempty" maxItems:"300" doc:"Waits for which nothing comes."`
}

// TryFailure is how a step fails.
type TryFailure struct {
	Code    string `json:"code,omitempty" maxLength:"128"`
	Message string `json:"message,omitempty" maxLength:"1024"`
}

// TriedFlow is what a run would do.
type TriedFlow struct {
	State    flow.RunState   `json:"state" enum:"running,failing,undoing,completed,failed,cancelled" doc:"Running: it would wait for a dead letter, or was cut short."`
	Output   json.RawMessage `json:"output,omitempty"`
	Failure  *RunFailure     `json:"failure,omitempty"`
	Waiting  []RunReason     `json:"waiting" nullable:"false"`
	Steps    []RunStep       `json:"steps" nullable:"false" doc:"In the order of the file."`
	Sent     []TriedSend     `json:"sent" nullable:"false" doc:"The jobs and events that it would send, in an order in which it might."`
	Cut      bool            `json:"cut,omitempty" doc:"It would send more than 1,000."`
	Problems []FlowProblem   `json:"problems,omitempty" doc:"Warnings."`
}

// TriedSend is one of them.
type TriedSend struct {
	Step    string          `json:"step"`
	Item    *int            `json:"item,omitempty" doc:"Of a for each."`
	Undo    bool            `json:"undo,omitempty" doc:"A compensation."`
	Kind    flow.Kind       `json:"kind" enum:"use,branch,parallel,join,delay,wait,flow,emit,dead_letter"`
	Use     string          `json:"use,omitempty" doc:"The kind of the job, the type of the event, or the flow."`
	Queue   string          `json:"queue,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Delay   Duration        `json:"delay,omitzero" doc:"Of a delay; of a wait: how long at most."`
}

func (a *API) flowDryRoutes(h huma.API) {
	op := operation(http.MethodPost, flowsPath+"/dry-run", "dry-run-flow", "Tell what a run of a file would do with an input; nothing is sent or stored")
	op.MaxBodyBytes = maxJobBody
	huma.Register(h, op, func(ctx context.Context, in *answer[TryFlow]) (*answer[TriedFlow], error) {
		if err := a.mayWrite(ctx, []byte(in.Body.Source)); err != nil {
			return nil, problemOf(err)
		}
		return reply(a.tryFlow(&in.Body))
	})
}

func (a *API) tryFlow(in *TryFlow) (TriedFlow, error) {
	plan, problems := flow.Load([]byte(in.Source), a.cfg.Known)
	if plan == nil {
		return TriedFlow{}, refuseFile(problems)
	}
	trial, err := in.trial(plan)
	if err != nil {
		return TriedFlow{}, err
	}
	input := flow.NewInput(in.Input)
	if err := runner.CheckInput(plan.Input, input.Raw()); err != nil {
		return TriedFlow{}, err
	}
	tried := plan.Try(input, a.cfg.Now(), trial)
	r := tried.Run
	v := TriedFlow{
		State: r.State, Output: r.Output, Failure: (*RunFailure)(r.Failure), Waiting: reasonsOf(plan.Waiting(r)), Steps: make([]RunStep, len(plan.Steps)),
		Sent: []TriedSend{}, Cut: tried.Cut, Problems: problemsOf(problems),
	}
	for i := range plan.Steps {
		v.Steps[i] = stepOfRun(&plan.Steps[i], r.Steps[plan.Steps[i].ID], v.Waiting)
	}
	for i := range tried.Sent {
		v.Sent = append(v.Sent, triedSend(&tried.Sent[i]))
	}
	return v, nil
}

// trial takes over the samples. A step that is not there is most likely a slip.
func (in *TryFlow) trial(plan *flow.Plan) (flow.Trial, error) {
	t := flow.Trial{Outputs: in.Outputs, Failures: map[string]flow.Failure{}, TimedOut: in.TimedOut}
	for id, f := range in.Failures {
		if f.Code == "" {
			f.Code = "handler"
		}
		if f.Message == "" {
			f.Message = "it failed in the dry run"
		}
		t.Failures[id] = flow.Failure{Code: f.Code, Message: f.Message}
	}
	for field, ids := range map[string][]string{"outputs": slices.Sorted(maps.Keys(in.Outputs)), "failures": slices.Sorted(maps.Keys(in.Failures)), "timedOut": in.TimedOut} {
		for _, id := range ids {
			if _, ok := plan.Step(id); !ok {
				return t, wrong(field+"."+id, "the flow has no step %q", id)
			}
		}
	}
	return t, nil
}

func triedSend(d *flow.Send) TriedSend {
	v := TriedSend{Step: d.Step, Undo: d.Undo, Kind: d.Kind, Use: d.Use, Queue: d.Queue, Payload: d.Payload, Delay: Duration(d.Delay)}
	if d.Item != flow.NoItem {
		v.Item = ptr(d.Item)
	}
	if v.Queue == "" && (d.Kind == flow.KindJob || d.Undo) {
		v.Queue = flow.DefaultQueue
	}
	return v
}
