package flow_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
)

func TestRenameFollowsEverywhere(t *testing.T) {
	src := `# about a
flow: f
steps:
  a: {use: x} # the first
  "b":
    use: y
    needs: [a, 'c']
    when: steps.a.output.n > 1 && 'steps.a' != "steps.a.x" # steps.a stays here
    with: {t: "say \"steps.a\" ${steps.a.output.t + \"steps.a\"}", u: 'it''s ${steps.a.output["a"]}', v: '$${steps.a}', w: "${steps.ab.output}"}
  c:
    for_each: {in: steps.a.output.list, max_in_flight: 2}
    use: a
    on_failure: {goto: d}
    needs: a
  ab: {branch: [{when: has(steps.a.output.x), to: [d]}, {to: d}], needs: a}
  d:
    use: z
    with:
      text: |
        a: ${steps.a.output.n}
        steps.a
      more: 1
    compensate: {use: a, with: "${steps.a.error.code}"}
  e: {parallel: [a1], needs: d}
  a1: {wait: {event: {type: a, match: event.id == steps.a.output.id}, timeout: 1d}, on_timeout: {goto: e, max: 2}}
layout: {steps: {a: {x: 1}, d: {x: 2}}, groups: {g: {steps: [a, d]}}, notes: {a: {text: a}}}
output: {a: "${steps.a.output}"}
`
	got, err := flow.Rename([]byte(src), "a", "first_1")
	if err != nil {
		t.Fatal(err)
	}
	want := src
	for _, r := range [][2]string{
		{"  a: {use: x}", "  first_1: {use: x}"}, {"[a, 'c']", "[first_1, 'c']"}, {"when: steps.a.output.n", "when: steps.first_1.output.n"},
		{"${steps.a.output.t +", "${steps.first_1.output.t +"}, {`${steps.a.output["a"]}`, `${steps.first_1.output["a"]}`}, {"in: steps.a.", "in: steps.first_1."},
		{"needs: a\n  ab", "needs: first_1\n  ab"}, {"has(steps.a.", "has(steps.first_1."}, {"needs: a}", "needs: first_1}"}, {"a: ${steps.a.output.n}", "a: ${steps.first_1.output.n}"},
		{"${steps.a.error", "${steps.first_1.error"}, {"== steps.a.", "== steps.first_1."}, {"layout: {steps: {a:", "layout: {steps: {first_1:"}, {"groups: {g: {steps: [a,", "groups: {g: {steps: [first_1,"}, {"output: {a: \"${steps.a.", "output: {a: \"${steps.first_1."},
	} {
		if strings.Count(want, r[0]) != 1 {
			t.Fatalf("%q is there %d times", r[0], strings.Count(want, r[0]))
		}
		want = strings.Replace(want, r[0], r[1], 1)
	}
	if string(got) != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	if back, err := flow.Rename(got, "first_1", "a"); err != nil || string(back) != src {
		t.Fatalf("and back (%v):\n%s", err, back)
	}
}

// Every step of every example can be renamed: the flow stays as sound as it was, does the
// same but for the name, and back again it is the file that it was, byte for byte.
func TestRenameOfExamples(t *testing.T) {
	for name, src := range examples(t) {
		d, _ := flow.Parse(src)
		_, before := flow.Load(src, flow.Known{})
		for _, s := range d.Steps {
			got, err := flow.Rename(src, s.ID, "another_name")
			if err != nil {
				t.Errorf("%s: %s: %v", name, s.ID, err)
				continue
			}
			if _, after := flow.Load(got, flow.Known{}); len(after) != len(before) {
				t.Errorf("%s: without %s: %v", name, s.ID, after)
			}
			if back, err := flow.Rename(got, "another_name", s.ID); err != nil || !bytes.Equal(back, src) {
				t.Errorf("%s: %s and back (%v):\n%s", name, s.ID, err, back)
			}
		}
	}
}

func TestRenameRefuses(t *testing.T) {
	for _, c := range []struct {
		from, to string
		code     forebay.Code
	}{
		{"none", "x", forebay.CodeNotFound}, {"a", "b", forebay.CodeConflict}, {"a", "1st", forebay.CodeInvalid}, {"a", "while", forebay.CodeInvalid}, {"a", "", forebay.CodeInvalid},
	} {
		if _, err := flow.Rename([]byte("flow: f\nsteps:\n  a: {use: x}\n  b: {use: x}\n"), c.from, c.to); forebay.CodeOf(err) != c.code {
			t.Errorf("%s to %s: %v; the code %s is wanted", c.from, c.to, err, c.code)
		}
	}
	// A text that goes on over lines is not touched half.
	if out, err := flow.Rename([]byte("flow: f\nsteps:\n  a: {use: x}\n  b:\n    use: x\n    needs: a\n    when: steps.a.output.x &&\n                  steps.a.output.y\n"), "a", "c"); forebay.CodeOf(err) != forebay.CodeUnsupported {
		t.Errorf("%v\n%s", err, out)
	}
}
