package flow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forebayhq/forebay/flow"
)

const head = "flow: f\nsteps:\n"

func TestProblemsHaveCodeAndPlace(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"a cycle", head + "  a: {use: x, needs: c}\n  b: {use: x, needs: a}\n  c: {use: x, needs: b}\n", "3:22 cycle steps.a.needs a → b → c → a"},
		{"itself", head + "  a: {use: x, needs: a}\n", "3:22 cycle steps.a.needs a → a"},
		{"behind an end", head + "  a: {dead_letter: no}\n  b: {use: x, needs: a}\n", "4:3 unreachable steps.b"},
		{"behind an else", head + "  a: {branch: [{to: b}, {when: 'true', to: c}]}\n  b: {use: x}\n  c: {use: x}\n", "3:16 unreachable steps.a.branch[0]"},
		{"no else", head + "  a: {branch: [{when: 'true', to: b}]}\n  b: {use: x}\n", "3:16 no_default steps.a.branch[0]"},
		{"unknown handler", head + "  a: {use: send-male}\n", `3:12 unknown_handler steps.a.use "send-mail"?`},
		{"unknown step", head + "  a: {use: x}\n  bb: {use: x, needs: [aa]}\n", `4:24 unknown_step steps.bb.needs[0]`},
		{"unknown sub-flow", head + "  a: {flow: g}\n", "3:13 unknown_flow steps.a.flow"},
		{"own sub-flow", head + "  a: {flow: f}\n", "3:13 cycle steps.a.flow"},
		{"join of a branch", head + "  a: {branch: [{when: 'input.x', to: b}, {to: c}]}\n  b: {use: x}\n  c: {use: x}\n  d: {join: all, needs: [b, c]}\n", "6:13 exclusive_join steps.d.join"},
		{"join further on", head + "  a: {branch: [{when: 'input.x', to: b}, {to: c}]}\n  b: {use: x}\n  c: {use: x}\n  c2: {use: x, needs: c}\n  d: {join: 2, needs: [b, c2]}\n", "7:13 exclusive_join steps.d.join"},
		{"join of failure and success", head + "  a: {use: x, on_failure: {goto: b}}\n  b: {use: x}\n  c: {use: x, needs: a}\n  d: {join: all, needs: [b, c]}\n", "6:13 exclusive_join steps.d.join"},
		{"join of too many", head + "  a: {use: x}\n  d: {join: 2, needs: a}\n", "4:13 value steps.d.join"},
		{"wait without end", head + "  a: {wait: {approval: true}}\n", "3:13 no_timeout steps.a.wait"},
		{"goto back", head + "  a: {use: x}\n  b: {use: x, needs: a, on_failure: {goto: a}}\n", "4:37 unbounded_goto steps.b.on_failure"},
		{"goto with max forward", head + "  a: {use: x, on_failure: {goto: b, max: 2}}\n  b: {use: x}\n", "3:27 value steps.a.on_failure"},
		{"not an ancestor", head + "  a: {use: x}\n  b: {use: x, when: steps.a.output.ok}\n", "4:21 not_ancestor steps.b.when"},
		{"no such step in CEL", head + "  aa: {use: x}\n  b: {use: x, needs: aa, with: '${steps.ab.output}'}\n", `4:32 unknown_step steps.b.with "aa"?`},
		{"CEL of a wrong type", head + "  a: {use: x, when: '1 + 1'}\n", "3:21 expression steps.a.when"},
		{"CEL that does not compile", head + "  a: {use: x, when: 'input.'}\n", "3:21 expression steps.a.when"},
		{"CEL against the schema", "flow: f\ninput: {type: object, properties: {plan: {type: string}}}\nsteps:\n  a: {use: x, when: input.plam == 'pro'}\n", "4:21 expression steps.a.when undefined field 'plam'"},
		{"CEL types by the schema", "flow: f\ninput: {type: object, properties: {plan: {type: string}}}\nsteps:\n  a: {use: x, when: input.plan == 1}\n", "4:21 expression steps.a.when"},
		{"an open ${", head + "  a: {use: x, with: {to: '${input.x'}}\n", "3:26 expression steps.a.with.to"},
		{"an unknown field", head + "  a: {use: x, need: [b]}\n", `3:15 unknown_field steps.a.need "needs"?`},
		{"no kind", head + "  a: {needs: []}\n", "3:6 kind steps.a"},
		{"two kinds", head + "  a: {use: x, delay: 1s}\n", "3:6 kind steps.a"},
		{"a field of another kind", head + "  a: {delay: 1s, retry: {attempts: 2}}\n", "3:25 unknown_field steps.a.retry"},
		{"a bad id", head + "  send-mail: {use: x}\n", "3:3 value steps.send-mail"},
		{"a reserved id", head + "  in: {use: x}\n", "3:3 value steps.in"},
		{"twice the same", head + "  a: {use: x}\n  a: {use: y}\n", "4:3 duplicate"},
		{"not YAML", "flow: f\nsteps: {a: [\n", "syntax"},
		{"an anchor", "flow: &x f\nsteps: {a: {use: x}}\n", "1:7 syntax"},
		{"nothing", "", "1:1 syntax"},
		{"not even a map", "hello", "1:1 type"},
		{"no steps", "flow: f\n", "1:1 missing"},
		{"a bad duration", head + "  a: {use: x, timeout: 5 minutes}\n", "3:24 type steps.a.timeout"},
		{"a number too large", head + "  a: {use: x, priority: 12}\n", "3:25 value steps.a.priority"},
		{"dead letters of items", head + "  a: {use: x, for_each: input.l, on_failure: dead_letter}\n", "3:46 value steps.a.on_failure"},
	} {
		_, problems := flow.Load([]byte(c.src), flow.Known{Handlers: []string{"x", "y", "send-mail"}, Flows: []string{"f", "other"}})
		if len(problems) == 0 {
			t.Errorf("%s: no problem was found", c.name)
			continue
		}
		p := problems[0]
		got := fmt.Sprintf("%d:%d %s %s %s", p.Line, p.Column, p.Code, p.Path, p.Text)
		for word := range strings.SplitSeq(c.want, " ") {
			if !strings.Contains(got, word) {
				t.Errorf("%s: got %q; %q of %q is missing", c.name, got, word, c.want)
			}
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	src := head + "  a: {use: x, needs: zz, when: '1', retry: {attempts: 0, back: 2}}\n  b: {wait: {event: e}}\n  c: {use: x, needs: [c]}\n"
	_, problems := flow.Load([]byte(src), flow.Known{})
	if len(problems) != 5 {
		t.Errorf("%d problems, want 5:\n%s", len(problems), problems.Error())
	}
}

func TestDiffInWords(t *testing.T) {
	a, _ := flow.Parse([]byte(head + "  a: {use: x}\n  b: {use: y, needs: a, retry: {attempts: 2}}\n  c: {delay: 1d, needs: b}\n"))
	b, _ := flow.Parse([]byte("flow: f\ntimeout: 1h\nsteps:\n  a: {use: x, queue: fast}\n  b: {use: y, needs: a, on_failure: {goto: d}}\n  d: {use: z}\n"))
	var got []string
	for _, c := range flow.Diff(a, b) {
		got = append(got, strings.TrimSpace(c.Step+" "+c.Kind+": "+c.Text))
	}
	want := `changed: timeout is now 1h
a changed: queue is now fast
b changed: attempts is not set any more; it was 2
b changed: on_failure is now goto d
d added: it does z
c removed: it was a step that waits for 1d`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if same := flow.Diff(a, a); len(same) > 0 {
		t.Error("a flow differs from itself:", same)
	}
}

// Depth is bounded before the file is parsed: what parsers pay for it grows faster.
func TestDepthIsBoundedBeforeParsing(t *testing.T) {
	for name, src := range map[string]string{
		"lists":   "flow: a\nsteps: " + strings.Repeat("[", 120_000),
		"maps":    "flow: a\nsteps: " + strings.Repeat("{a: ", 50_000),
		"dashes":  "flow: a\nsteps:\n  " + strings.Repeat("- ", 100_000) + "x",
		"columns": "flow: a\nsteps:\n" + strings.Repeat(" ", 5000) + "a: 1\n",
		"lines":   "flow: a\nsteps: " + strings.Repeat("[\n", 80_000),
	} {
		_, problems := flow.Parse([]byte(src))
		if len(problems) != 1 || problems[0].Code != flow.CodeLimit || problems[0].Line < 2 {
			t.Errorf("%s: %.200v", name, problems)
		}
	}
	fine := head + "  a: {use: x, with: {text: \"" + strings.Repeat("[({", 30) + "\"}}\n"
	if _, problems := flow.Parse([]byte(fine)); len(problems) > 0 {
		t.Error("brackets of a text:", problems)
	}
}

// A queue that is worked here must have the handler; another may be worked elsewhere.
func TestQueuesThatAreKnown(t *testing.T) {
	src := head + "  a: {use: mail, queue: mails}\n  b: {use: mial, queue: mails}\n  c: {use: mail}\n  d: {use: x, queue: mails, compensate: {use: mail, queue: mails}}\n"
	_, problems := flow.Load([]byte(src), flow.Known{Queues: map[string][]string{"mails": {"mail"}, "works": {"x"}}})
	want := []string{
		`4:12: nobody handles "mial" on the queue mails; there are handlers there for: mail (steps.b.use, unknown_handler)`,
		`5:12: warning: nothing here works the queue default; "mail" waits there until a worker pulls it; it is handled on the queue mails (steps.c.use, unworked_queue)`,
		`6:12: nobody handles "x" on the queue mails; there are handlers there for: mail; it is handled on the queue works (steps.d.use, unknown_handler)`,
	}
	if got := problems.Error(); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s", got)
	}
}
