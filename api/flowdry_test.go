package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

func TestAFlowIsTriedWithoutSendingAnything(t *testing.T) {
	t.Parallel()
	var mux task.Mux
	mux.Handle("double", task.Func(func(context.Context, *worker.Job, int) (int, error) { panic("a dry run does nothing") }))
	s, ctx := withFlows(t, &mux), t.Context()
	try := api.TryFlow{Source: order, Input: json.RawMessage(`{"n":21}`), Outputs: map[string]json.RawMessage{"double": json.RawMessage("42")}}

	got := must[api.TriedFlow](t)(s.TryFlow(ctx, try))
	if got.State != flow.RunCompleted || string(got.Output) != `{"n":42,"shipped":"completed"}` {
		t.Errorf("state %s, output %s", got.State, got.Output)
	}
	if ship := got.Sent[2]; ship.Step != "ship" || ship.Queue != "outside" || string(ship.Payload) != `{"n":42}` {
		t.Errorf("it would send %+v", got.Sent)
	}
	if page, err := s.Runs(ctx, api.RunFilter{}, "", 10); err != nil || len(page.Items) != 0 {
		t.Errorf("runs: %+v, %v", page.Items, err)
	}

	seen := must[api.FlowPreview](t)(s.PreviewFlow(ctx, api.PreviewFlow{Source: order, Step: "ship", Value: json.RawMessage(`{"n":"${steps.double.output + input.n}"}`), Input: json.RawMessage(`{"n":21}`), Outputs: try.Outputs}))
	if string(seen.Value) != `{"n":63}` || len(seen.Names) < 8 {
		t.Errorf("preview: %+v", seen)
	}
	if seen = must[api.FlowPreview](t)(s.PreviewFlow(ctx, api.PreviewFlow{Source: order, Step: "ship", Expression: "input.m"})); seen.Error != "input.m does not compile: undefined field 'm'" {
		t.Errorf("preview of what is wrong: %+v", seen)
	}

	try.TimedOut = []string{"look"}
	if got = must[api.TriedFlow](t)(s.TryFlow(ctx, try)); got.State != flow.RunFailed || got.Failure.Step != "look" || got.Steps[2].State == flow.StepCompleted {
		t.Errorf("without an answer: %+v", got)
	}
	for field, bad := range map[string]api.TryFlow{
		"input.n":     {Source: order, Input: json.RawMessage(`{"n":"x"}`)},
		"timedOut.me": {Source: order, Input: json.RawMessage(`{"n":1}`), TimedOut: []string{"me"}},
		"steps.a":     {Source: "flow: x\nsteps: {a: {}}\n"},
	} {
		_, err := s.TryFlow(ctx, bad)
		var e *forebay.Error
		if !errors.As(err, &e) || e.Code != forebay.CodeInvalid || e.Field != field {
			t.Errorf("%s: %+v", field, err)
		}
	}
}
