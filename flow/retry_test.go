package flow_test

import (
	"testing"
	"time"

	"github.com/forebayhq/forebay/flow"
)

// TestARetryFromAStepBeginsWhatHasFailedToo: before it and beside it. A run in which
// something has failed would else complete without it.
func TestARetryFromAStepBeginsWhatHasFailedToo(t *testing.T) {
	plan, problems := flow.Load([]byte("flow: f\nsteps:\n  a: {use: x}\n  b: {use: x, needs: a}\n  c: {use: x, needs: b}\n  d: {use: x}\n"), flow.Known{})
	if plan == nil {
		t.Fatal(problems)
	}
	for _, from := range []string{"c", "d", "b", ""} {
		run, input := plan.Begin("r", time.Unix(0, 0)), flow.NewInput(nil)
		plan.Advance(run, input)
		end := func(step string, how flow.EventType) flow.Effects {
			return plan.Advance(run, input, flow.Event{Step: step, Round: run.Steps[step].Round, Item: flow.NoItem, Type: how})
		}
		end("a", flow.EventCompleted)
		end("d", flow.EventCompleted)
		end("b", flow.EventFailed)
		e, err := plan.Command(run, input, flow.Command{Do: flow.DoRetry, Step: from})
		if err != nil || run.State != flow.RunRunning || run.Steps["b"].State != flow.StepSent {
			t.Fatalf("retried from %q it is %s, b is %s: %v, %v", from, run.State, run.Steps["b"].State, e, err)
		}
		if from == "d" {
			end("d", flow.EventCompleted)
		}
		end("b", flow.EventCompleted)
		end("c", flow.EventCompleted)
		if run.State != flow.RunCompleted || run.Steps["c"].State != flow.StepCompleted || run.Steps["a"].Round != 0 {
			t.Errorf("retried from %q it ends as %s, c is %s", from, run.State, run.Steps["c"].State)
		}
	}
}
