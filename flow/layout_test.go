package flow_test

import (
	"testing"

	"github.com/forebayhq/forebay/flow"
)

const placed = `flow: a
steps:
  one: {use: x} # the first
  two: {use: y, needs: one}
`

func TestALayoutChangesNothingThatRuns(t *testing.T) {
	t.Parallel()
	layout := "layout:\n  steps: {one: {x: 10, y: -5}}\n  notes: {n: {x: 1, y: 2, text: why}}\n  groups: {g: {title: both, steps: [one, two], collapsed: true}}\n"
	a, problems := flow.Load([]byte(placed), flow.Known{})
	b, more := flow.Load([]byte(placed+layout), flow.Known{})
	if len(problems)+len(more) > 0 || len(flow.Diff(a.Definition, b.Definition)) > 0 || a.Layout != nil {
		t.Fatal(problems, more, flow.Diff(a.Definition, b.Definition))
	}
	if want := `{"steps":{"one":{"x":10,"y":-5}},"notes":{"n":{"x":1,"y":2,"text":"why"}},"groups":{"g":{"title":"both","steps":["one","two"],"collapsed":true}}}`; string(b.Layout) != want {
		t.Errorf("the layout is %s", b.Layout)
	}
	for other, same := range map[string]bool{
		placed + layout:                   true,
		placed + "layout: {steps: {}}\n":  true,
		layout + placed:                   true,
		placed:                            true,
		placed + "  three: {use: z}\n":    false,
		"# another comment\n" + placed:    false,
		placed + "timeout: 1h\n" + layout: false,
		"flow: a":                         false,
		"{":                               false,
	} {
		if flow.SameButLayout([]byte(placed), []byte(other)) != same {
			t.Errorf("as one: %v wanted:\n%s", same, other)
		}
	}
	for _, wrong := range []string{
		"layout: {steps: {none: {x: 1}}}", "layout: {steps: {one: {x: far}}}", "layout: {one: {x: 1}}", "layout: 7", "layout: {notes: {n: {x: 1}, 1: {}}}", "layout: {groups: {g: {steps: [none], collapsed: maybe}}}",
	} {
		plan, problems := flow.Load([]byte(placed+wrong+"\n"), flow.Known{})
		if plan == nil || len(problems) == 0 || !problems[0].Warning || problems[0].Line != 5 {
			t.Errorf("%s: %v", wrong, problems)
		}
	}
}
