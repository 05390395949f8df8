package flow_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/flow"
)

func TestFormatIsIdempotent(t *testing.T) {
	for name, src := range examples(t) {
		same, err := flow.Format(src)
		if err != nil {
			t.Fatal(name, err)
		}
		if !bytes.Equal(same, src) {
			t.Errorf("%s is not as Format writes it:\n%s", name, same)
		}
		for seed := range uint64(50) {
			bad := untidy(rand.New(rand.NewPCG(seed, 1)), string(src))
			once, err := flow.Format([]byte(bad))
			if err != nil {
				t.Fatalf("%s, seed %d: %v\n%s", name, seed, err, bad)
			}
			if twice, err := flow.Format(once); err != nil || !bytes.Equal(once, twice) {
				t.Fatalf("%s, seed %d: %v; formatted twice it is another:\n%s\n---\n%s", name, seed, err, once, twice)
			}
			if strings.Count(string(once), "#") != strings.Count(string(src), "#") {
				t.Fatalf("%s, seed %d: comments were lost:\n%s", name, seed, once)
			}
		}
	}
}

// untidy writes a tidy file with other indentation, blanks and empty lines.
func untidy(r *rand.Rand, src string) string {
	width := 1 + r.IntN(5)
	var out []string
	dash, moved := -1, 0 // where the last item began, before and after
	for line := range strings.SplitSeq(src, "\n") {
		content := strings.TrimLeft(line, " ")
		if content == "" && r.IntN(2) == 0 {
			out = append(out, "")
		}
		indent := (len(line) - len(content)) / 2 * width
		if len(line)-len(content) == dash+2 && dash >= 0 {
			indent = moved + 2
		} else if dash = -1; strings.HasPrefix(content, "- ") {
			dash, moved = len(line)-len(content), indent
		}
		out = append(out, strings.Repeat(" ", indent)+content+strings.Repeat(" ", r.IntN(2)*r.IntN(3)))
	}
	return strings.Join(out, []string{"\n", "\r\n"}[r.IntN(2)])
}

func TestFormatKeepsWhatIsSaid(t *testing.T) {
	src := "flow: f\ninput:\n      type: object\n      properties: {a: {type: string}}\nsteps:\n   # the first\n   a:\n      use: x\n      with:\n         text: |\n            line # no comment\n\n\n              further in\n         list:\n         -   one\n         -   k: v\n             l: w\n      # after a\n   b: {use: y,\n       needs: a}\n\n\n\n# the end\n"
	want := "flow: f\ninput:\n  type: object\n  properties: {a: {type: string}}\nsteps:\n  # the first\n  a:\n    use: x\n    with:\n      text: |\n         line # no comment\n\n\n           further in\n      list:\n        - one\n        - k: v\n          l: w\n    # after a\n  b: {use: y,\n      needs: a}\n\n# the end\n"
	got, err := flow.Format([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEditTouchesOneValue(t *testing.T) {
	src := "# head\nflow: f # name\nsteps:\n  a:\n    use: x # why\n    # about the queue\n    queue: one\n    retry: {attempts: 3, base: 1s} # twice\n\n  # the second\n  b: {use: y, needs: [a]}\n  c:\n    needs:\n      - a\n      - b\n    use: z\n"
	for _, c := range []struct{ path, value, old, new string }{
		{"steps.a.queue", `"two"`, "queue: one", "queue: two"},
		{"steps.a.use", `"x y"`, "use: x # why", "use: x y # why"},
		{"steps.a.retry.attempts", `5`, "attempts: 3", "attempts: 5"},
		{"steps.a.retry.cap", `"1m"`, "base: 1s}", `base: 1s, cap: "1m"}`},
		{"steps.a.retry.attempts", ``, "attempts: 3, ", ""},
		{"steps.a.retry.base", ``, ", base: 1s", ""},
		{"steps.a.queue", ``, "    queue: one\n", ""},
		{"steps.a.timeout", `"30s"`, "# twice\n", "# twice\n    timeout: \"30s\"\n"},
		{"steps.b.on_failure", `"skip"`, "needs: [a]}", "needs: [a], on_failure: skip}"},
		{"steps.b.on_failure", `{"goto":"c"}`, "needs: [a]}", "needs: [a], on_failure: {goto: c}}"},
		{"steps.b.needs", `["a","c"]`, "needs: [a]", "needs: [a, c]"},
		{"steps.c.needs", `["b"]`, "needs:\n      - a\n      - b\n", "needs: [b]\n"},
		{"steps.c.retry.attempts", `2`, "    use: z\n", "    use: z\n    retry:\n      attempts: 2\n"},
		{"steps.c.needs[1]", `"d"`, "- b", "- d"},
		{"steps.d", `{"use":"w","needs":["c"]}`, "    use: z\n", "    use: z\n  d:\n    use: w\n    needs: [c]\n"},
		{"flow", `"no"`, "flow: f", `flow: "no"`},
		{"steps.a.with", `{"to":"${input.x}","list":[{"k":1}]}`, "# twice\n", "# twice\n    with:\n      to: ${input.x}\n      list:\n        - k: 1\n"},
	} {
		var value json.RawMessage
		if c.value != "" {
			value = json.RawMessage(c.value)
		}
		got, err := flow.Edit([]byte(src), c.path, value)
		if err != nil {
			t.Errorf("%s = %s: %v", c.path, c.value, err)
			continue
		}
		if want := strings.Replace(src, c.old, c.new, 1); string(got) != want {
			t.Errorf("%s = %s:\n%s\nwant\n%s", c.path, c.value, got, want)
		}
	}
}

func TestEditRefusesWhatItCannotDo(t *testing.T) {
	for path, value := range map[string]string{"steps.zzz.use": "", "steps.a[3]": `1`, "steps.a.use": `{`} {
		var raw json.RawMessage
		if value != "" {
			raw = json.RawMessage(value)
		}
		if _, err := flow.Edit([]byte("flow: f\nsteps:\n  a: {use: x}\n"), path, raw); err == nil {
			t.Errorf("%s = %q was done", path, value)
		}
	}
}

// Every field of every example can be set to what it is, without a trace, and to
// something else, with all other lines as they were.
func TestEditOfExamples(t *testing.T) {
	for name, src := range examples(t) {
		for _, step := range []string{"title", "timeout", "queue"} {
			d, _ := flow.Parse(src)
			for _, s := range d.Steps {
				path := fmt.Sprintf("steps.%s.%s", s.ID, step)
				out, err := flow.Edit(src, path, json.RawMessage(`"1h"`))
				if err != nil {
					t.Errorf("%s: %s: %v", name, path, err)
					continue
				}
				if gone := strings.Count(string(src), "#") - strings.Count(string(out), "#"); gone != 0 {
					t.Errorf("%s: %s: comments were lost:\n%s", name, path, out)
				}
				back, err := flow.Edit(out, path, nil)
				if err != nil {
					t.Errorf("%s: %s: %v", name, path, err)
				} else if s.Queue == "" && s.Timeout == 0 && !bytes.Equal(back, src) {
					t.Errorf("%s: %s set and taken out leaves a trace:\n%s", name, path, back)
				}
			}
		}
	}
}
