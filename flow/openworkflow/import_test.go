package openworkflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/openworkflow"
)

// A document as others write it becomes a flow that is sound, and what is left out of it
// is told. Both are kept to be looked at.
func TestADocumentOfOthersIsRead(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("testdata/pet.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	src, told, err := openworkflow.Import(doc)
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for _, p := range told {
		fmt.Fprintln(&list, p)
	}
	golden(t, "pet.yaml", src)
	golden(t, "pet.notes.txt", []byte(list.String()))
}

// What cannot cross without doing something else, and what no document may have, is
// refused with code and place, and nothing is made of it.
func TestWhatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	head := "document: {dsl: 1.0.3, namespace: a, name: a, version: 0.1.0}\n"
	deep := strings.Repeat("{do: [{a: ", 40) + "{call: x}" + strings.Repeat("}]}", 40)
	for _, c := range []struct{ doc, code, want string }{
		{strings.Repeat("#", flow.MaxFileBytes+1), "limit", "0:0 the file has"},
		{head + "do: [{a: " + deep + "}]\n", "limit", "2:"},
		{head + "do: " + strings.Repeat("[", 300) + "\n", "limit", "2:205 nested too deep"},
		{head + "use: {x: &b [1]}\ndo: [{a: {call: x, with: {y: *b}}}]\n", "syntax", "2:"},
		{head + "---\na: 1\n", "syntax", "a second document"},
		{head + "do: [{a: {call: x, call: y}}]\n", "duplicate", `2:20 "call" is there twice`},
		{"a: [\n", "syntax", "not YAML"},
		{"", "syntax", "empty"},
		{"- 1\n", "not_portable", "no map"},
		{"document: {dsl: 0.8, name: a}\ndo: [{a: {call: x}}]\n", "not_portable", "1:17 the DSL 0.8 is not read"},
		{head, "not_portable", "do is missing"},
		{head + "do: [{a: {call: x, then: a}}]\n", "not_portable", "2:26 then leads to a, which is not further on"},
		{head + "do: [{a: {call: x}, b: {call: y}}]\n", "not_portable", "2:6 a task is a map of one name"},
		{head + "do: [{a: {run: {script: {language: js}}}}]\n", "not_portable", "2:16 a run is read that is of a workflow"},
		{head + "do: [{a: {call: x, if: '${ .a | map(.b) }'}}]\n", "not_portable", "map is not among what crosses"},
		{head + "do: [{a: {call: x, with: {b: '${ .a as $x | $x }'}}}]\n", "not_portable", `"as" is not expected`},
		{head + "do: [{a: {call: x, with: {b: '${ $secrets.t }'}}}]\n", "not_portable", "$secrets is not known here"},
		{head + "do: [{a: {call: x, with: {b: '${ " + strings.Repeat("(", 150) + ". }'}}}]\n", "not_portable", "nested too deep"},
		{head + "do: [{a: {for: {in: '${ .l }'}, do: [{b: {call: x}}, {c: {call: y}}]}}]\n", "not_portable", "more is a workflow of its own"},
		{head + "do: [{a: {try: [{b: {call: x}}, {c: {call: y}}], catch: {do: []}}}]\n", "not_portable", "a try is read that has one task"},
		{head + "do: [{a: {listen: {to: {all: []}}}}]\n", "not_portable", "one event of a type"},
		{head + "do: [{a: {wait: 5 minutes}}]\n", "not_portable", "a wait is a duration"},
		{head + "do: [{a: {call: 'x', timeout: {after: P1Y}}}]\n", "not_portable", "a timeout is {after: duration}"},
	} {
		src, told, err := openworkflow.Import([]byte(c.doc))
		var wrong flow.Problems
		if !errors.As(err, &wrong) || src != nil || len(told.Errors()) == 0 {
			t.Errorf("%.120s: taken: %v\n%s", c.doc, err, src)
			continue
		}
		if first := told.Errors()[0]; first.Code != c.code || !strings.Contains(fmt.Sprintf("%d:%d %s", first.Line, first.Column, first.Text), c.want) {
			t.Errorf("%.120s: %d:%d %s (%s), want %s (%s)", c.doc, first.Line, first.Column, first.Text, first.Code, c.want, c.code)
		}
	}
}

func TestWhatCannotBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"flow: f\nsteps:\n  a: {delay: {until: input.at}}\n", "3:14 a delay until a time has no counterpart"},
		{"flow: f\nsteps:\n  a: {use: x}\n  b: {use: x}\n  c: {join: any, needs: [a, b]}\n  d: {use: x, needs: c}\n", "5:13 a join of some has no counterpart"},
		{"flow: f\nsteps:\n  a: {use: x, with: {n: \"${input.list.map(x, x.n)}\"}}\n", "a macro over a list"},
		{"flow: f\nsteps:\n  a: {use: x, when: \"run.version > 2\"}\n", "3:21 the expression run.version > 2 cannot be written in jq"},
		{"flow: f\nsteps:\n  a: {use: x, on_failure: {goto: c}}\n  b: {use: y, needs: a}\n  c: {use: z, needs: b}\n", "a step that others lead to as well"},
		{"flow: f\nsteps:\n  a: {use: x, needs: b}\n", "there is no step"},
	} {
		doc, told, err := openworkflow.Export([]byte(c.src))
		if err == nil || doc != nil || len(told.Errors()) == 0 {
			t.Errorf("%s: written:\n%s", c.src, doc)
			continue
		}
		if first := told.Errors()[0]; !strings.Contains(fmt.Sprintf("%d:%d %s", first.Line, first.Column, first.Text), c.want) {
			t.Errorf("%s: %d:%d %s, want %s", c.src, first.Line, first.Column, first.Text, c.want)
		}
	}
	// What is no nest of forks waits for more than it needs, and says so.
	doc, told, err := openworkflow.Export([]byte("flow: f\nsteps:\n  a: {use: x}\n  b: {use: x}\n  c: {use: x, needs: [a, b]}\n  d: {use: x, needs: b}\n"))
	if err != nil || !strings.Contains(told.Error(), "6:6: warning: d waits for a too") {
		t.Errorf("%v %v\n%s", err, told, doc)
	}
}

// Whatever a document has in it, reading it ends well or with problems; what is made of it
// is sound, and can be written again or says why not. Documents are those above with
// something taken out, doubled or put in at random.
func TestAnyDocumentEndsWell(t *testing.T) {
	t.Parallel()
	var docs [][]string
	words := []string{"- x:\n", "do", "call", "switch", "then: end", "if: '${ . }'", "null", "{}", "[]", "'${ $context.a }'", "exit", "catch", "[0]", "| not", "\"", "}", "for"}
	for _, name := range []string{"pet.in.yaml", "images.openworkflow.yaml", "order.openworkflow.yaml"} {
		doc, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, strings.SplitAfter(string(doc), "\n"))
	}
	r := rand.New(rand.NewPCG(7, 7))
	taken := 0
	for turn := range 150 {
		lines := slices.Clone(docs[turn%len(docs)])
		for range 1 + r.IntN(3) {
			at := r.IntN(len(lines))
			switch word := words[r.IntN(len(words))]; r.IntN(5) {
			case 0:
				lines = slices.Delete(lines, at, at+1)
			case 1:
				lines = slices.Insert(lines, at, lines[r.IntN(len(lines))])
			case 2:
				i := r.IntN(len(lines[at]) + 1)
				lines[at] = lines[at][:i] + word + lines[at][i:]
			case 3:
				if key, _, ok := strings.Cut(lines[at], ":"); ok {
					lines[at] = key + ": " + word + "\n"
				}
			case 4:
				other := docs[r.IntN(len(docs))]
				lines[at] = other[r.IntN(len(other))]
			}
		}
		doc := strings.Join(lines, "")
		src, told, err := openworkflow.Import([]byte(doc))
		if err != nil {
			if len(told.Errors()) == 0 {
				t.Fatalf("turn %d: refused without a reason: %v\n%s", turn, err, doc)
			}
			continue
		}
		taken++
		if _, problems := flow.Load(src, flow.Known{}); len(problems.Errors()) > 0 {
			t.Fatalf("turn %d: %v\n%s\n%s", turn, problems, src, doc)
		}
		if _, told, err := openworkflow.Export(src); err != nil && len(told.Errors()) == 0 {
			t.Fatalf("turn %d: not written without a reason: %v\n%s", turn, err, src)
		}
	}
	if taken < 10 {
		t.Errorf("of 150 documents %d were taken: the others show little", taken)
	}
}

// What follows a task with a condition goes on where it does not hold, also from the
// beginning of a document, where nothing else leads to it.
func TestWhatFollowsAConditionGoesOn(t *testing.T) {
	t.Parallel()
	src, _, err := openworkflow.Import([]byte("document: {dsl: 1.0.3, namespace: a, name: a, version: 0.1.0}\n" +
		"do: [{a: {if: '${ .n > 1 }', call: x, with: {}}}, {b: {call: y, with: {}}}, {c: {if: '${ $workflow.input.n > 2 }', call: z, with: {}}}, {d: {call: v, with: {}}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := flow.Load(src, flow.Known{})
	for input, want := range map[string]string{`{"n":1}`: "b d", `{"n":2}`: "a b d", `{"n":3}`: "a b c d"} {
		var sent []string
		for _, s := range plan.Try(flow.NewInput(json.RawMessage(input)), time.Now(), flow.Trial{}).Sent {
			sent = append(sent, s.Step)
		}
		if got := strings.Join(sent, " "); got != want {
			t.Errorf("%s: %s, want %s\n%s", input, got, want, src)
		}
	}
}
