package flow_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/flow"
)

const drafted = `flow: a
input: {type: object, properties: {name: {type: string}, n: {type: integer}}}
steps:
  made: {use: make}
  far: {use: x}
  each: {use: y, needs: made, for_each: input.list, with: {id: "${steps.made.output.id}"}}
  wait: {wait: {event: {type: paid, match: event.n == }, timeout: 1h}, needs: each}
  broken: {branch: []}
`

func TestADraftTellsWhatItsExpressionsMayUseAndWouldGive(t *testing.T) {
	t.Parallel()
	sample := flow.Sample{Input: json.RawMessage(`{"name":"ann","n":2,"extra":{"deep":[1]}}`), Outputs: map[string]json.RawMessage{"made": json.RawMessage(`{"id":"m-1","big":12345678901234567}`)}, Item: json.RawMessage(`{"part":1,"deep":{"id":"x"}}`), Event: json.RawMessage(`{"n":2}`)}
	each, err := flow.NewDraft([]byte(drafted), known(t), "each")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range each.Names(sample) {
		names = append(names, n.Name+":"+n.Type)
	}
	for _, want := range []string{"input.name:string", "input.n:int", "steps.made.output.id:string", "steps.made.output.ok:bool", "item.deep.id:string", "steps.made.state:string", "item.part:number", "index:int", "run.id:string"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not offered: %v", want, names)
		}
	}
	if text := strings.Join(names, " "); strings.Contains(text, "far") || strings.Contains(text, "big") || strings.Contains(text, "extra") || strings.Contains(text, "event") || strings.Contains(text, "wait") {
		t.Errorf("what does not come before is offered: %v", names)
	}
	for value, want := range map[string]string{
		`{"to":"${input.name}","all":["${input.n + 1}"],"n":7}`: `{"to":"ann","all":[3],"n":7}`,
		`"${item.part}: ${index}"`:                              `"1: 0"`,
		`"${steps.far.output}"`:                                 "steps.far.output uses the step far, which need not have ended by then",
		`"${input.naem}"`:                                       "undefined field 'naem'",
		`"${input.name"`:                                        "${ has no } that ends it",
	} {
		got, err := each.Value(json.RawMessage(value), sample)
		if string(got) != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s gives %s, %v; want %s", value, got, err, want)
		}
	}
	wait, err := flow.NewDraft([]byte(drafted), flow.Known{}, "wait")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := wait.Expression("event.n == input.n", sample); err != nil || string(got) != "true" {
		t.Errorf("the match gives %s, %v", got, err)
	}
	if _, err := wait.Expression("steps.made.output.none > 1", sample); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("what the sample does not have: %v", err)
	}
	for step, src := range map[string]string{"a": "flow: x\nsteps: {a: {use: x, needs: b}, b: {use: x, needs: a}}", "none": drafted, "": "{"} {
		if d, err := flow.NewDraft([]byte(src), flow.Known{}, step); err == nil {
			t.Errorf("%q in %s: %v", step, src, d)
		}
	}
}
