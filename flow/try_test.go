package flow_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/flow"
)

const tried = `
flow: tried
input: {type: object, properties: {total: {type: number}, images: {type: array, items: {type: string}}}}
steps:
  check: {use: check}
  size:
    needs: check
    branch: [{when: steps.check.output.risk > input.total, to: review}, {to: pay}]
  review: {wait: {approval: {role: ops}, timeout: 1d}, on_timeout: fail}
  pay: {use: charge, needs: review, with: {sum: "${input.total}"}, compensate: refund}
  thumbs: {use: resize, needs: check, for_each: {in: input.images, max_in_flight: 2}, with: {file: "${item}"}}
  tell: {emit: {type: paid, data: {n: "${steps.thumbs.output.completed}"}}, needs: [pay, thumbs]}
  parcel: {use: pack, needs: tell}
output: {risk: "${steps.check.output.risk}"}
`

func TestADryRunDecidesAsARunDoes(t *testing.T) {
	plan, problems := flow.Load([]byte(tried), flow.Known{})
	if plan == nil {
		t.Fatal(problems)
	}
	input := flow.NewInput([]byte(`{"total": 5, "images": ["a", "b", "c"]}`))
	try := func(trial flow.Trial) (flow.Tried, string) {
		got := plan.Try(input, time.Unix(0, 0), trial)
		var sent []string
		for _, d := range got.Sent {
			text := d.Step
			if d.Undo {
				text += "~undo"
			}
			sent = append(sent, text+" "+string(d.Payload))
		}
		return got, strings.Join(sent, "\n")
	}
	outputs := func(risk string) map[string]json.RawMessage {
		return map[string]json.RawMessage{"check": json.RawMessage(`{"risk": ` + risk + `}`)}
	}

	got, sent := try(flow.Trial{Outputs: outputs("1")})
	if got.Run.State != flow.RunCompleted || string(got.Run.Output) != `{"risk":1}` {
		t.Errorf("state %s, output %s", got.Run.State, got.Run.Output)
	}
	if s := got.Run.Steps["size"]; !slices.Equal(s.To, []string{"pay"}) || got.Run.Steps["review"].State != flow.StepSkipped {
		t.Errorf("the branch chose %v, and the review is %s", s.To, got.Run.Steps["review"].State)
	}
	for _, want := range []string{`pay {"sum":5}`, `thumbs {"file":"a"}`, `thumbs {"file":"c"}`, `tell {"n":3}`} {
		if !strings.Contains(sent, want) {
			t.Errorf("%s is not in what was sent:\n%s", want, sent)
		}
	}

	got, _ = try(flow.Trial{Outputs: outputs("9")})
	if got.Run.State != flow.RunCompleted || got.Run.Steps["review"].State != flow.StepCompleted {
		t.Errorf("with an approval the run is %s, the review %s", got.Run.State, got.Run.Steps["review"].State)
	}

	got, _ = try(flow.Trial{Outputs: outputs("9"), TimedOut: []string{"review"}})
	if got.Run.State != flow.RunFailed || got.Run.Failure.Step != "review" {
		t.Errorf("without an answer the run is %s, failed at %v", got.Run.State, got.Run.Failure)
	}

	got, sent = try(flow.Trial{Outputs: outputs("1"), Failures: map[string]flow.Failure{"parcel": {Code: "full", Message: "no room"}}})
	if got.Run.State != flow.RunFailed || !strings.Contains(sent, "pay~undo") {
		t.Errorf("the run is %s; sent:\n%s", got.Run.State, sent)
	}

	// An expression that finds nothing is told as a run would tell it.
	got, _ = try(flow.Trial{})
	if got.Run.State != flow.RunFailed || got.Run.Failure.Code != flow.FailExpression || got.Run.Failure.Step != "size" {
		t.Errorf("without an output: %s %+v", got.Run.State, got.Run.Failure)
	}
}

func TestADryRunIsBounded(t *testing.T) {
	plan, problems := flow.Load([]byte("flow: many\nsteps:\n  all: {use: one, for_each: {in: \"100000\", max_in_flight: 1000}}\n"), flow.Known{})
	if plan == nil {
		t.Fatal(problems)
	}
	if got := plan.Try(flow.NewInput(nil), time.Unix(0, 0), flow.Trial{}); !got.Cut || len(got.Sent) != flow.MaxTried {
		t.Errorf("cut: %v, sent: %d", got.Cut, len(got.Sent))
	}
}
