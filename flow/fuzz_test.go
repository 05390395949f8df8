package flow_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/forebayhq/forebay/flow"
)

// FuzzFile: whatever a file has in it, reading, formatting and editing it end well or
// with problems; what is formatted stays as it is, and says the same.
func FuzzFile(f *testing.F) {
	for _, src := range [][]byte{
		[]byte("flow: f\nsteps:\n  a: {use: x}\n  b:\n    use: y\n    needs: [a] # why\n    with:\n      t: |\n        text\n"),
		[]byte("flow: f\nsteps: {a: {branch: [{when: 'input.x', to: b}, {to: [c]}]}, b: {use: x}, c: {delay: 1d}}\n"),
		[]byte("a: &x 1\nb: *x\n"), []byte("- - a\n"), []byte("flow: \"\\u00e4\"\nsteps:\n- 1\n"),
	} {
		f.Add(src, "steps.a.queue", `"q"`)
	}
	f.Fuzz(func(t *testing.T, src []byte, path, value string) {
		plan, problems := flow.Load(src, flow.Known{})
		if plan == nil && len(problems) == 0 {
			t.Fatal("no plan, and no problem")
		}
		if plan != nil {
			if _, err := flow.Format(src); err != nil {
				t.Logf("not formatted: %v", err)
			}
		}
		once, err := flow.Format(src)
		if err == nil {
			if twice, err := flow.Format(once); err != nil || !bytes.Equal(once, twice) {
				t.Fatalf("formatted twice it is another (%v):\n%q\n%q", err, once, twice)
			}
		}
		if out, err := flow.Edit(src, path, json.RawMessage(value)); err == nil {
			if _, problems := flow.Parse(out); len(problems) > 0 && problems[0].Code == flow.CodeSyntax {
				t.Fatalf("edited, it is no YAML any more: %v\n%s", problems, out)
			}
		}
	})
}
