package openworkflow_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/openworkflow"
)

var update = flag.Bool("update", false, "write the files that are compared with")

// inputs with which the examples are tried, all of which fit their schemas.
var inputs = map[string][]string{
	"gallery":      {`{"gallery":"g","sources":["a","b"]}`},
	"images":       {`{"source":"a","widths":[1,2,3],"watermark":"w"}`, `{"source":"a","widths":[1]}`},
	"order":        {`{"orderId":"o","amount":1.5,"country":"FR"}`, `{"orderId":"o","amount":2}`, `{"orderId":"o","amount":0}`},
	"photo":        {`{"source":"a","user":"u","watermark":"w"}`, `{"source":"a","user":"u"}`},
	"registration": {`{"email":"a@example.com","name":"Ada"}`},
}

func examples(t *testing.T) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("../../examples/flows/*.yaml")
	if err != nil || len(names) != len(inputs) {
		t.Fatalf("%d examples, and inputs for %d: %v", len(names), len(inputs), err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".yaml")] = src
	}
	return all
}

// Every example is written as a document, which is kept to be looked at, and read again.
// What comes back sends the same with the same data, whatever the steps give, and whichever
// of them fail: not a field but what a run does is compared.
func TestExamplesCrossAndComeBack(t *testing.T) {
	t.Parallel()
	for name, src := range examples(t) {
		doc, told, err := openworkflow.Export(src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var list strings.Builder
		for _, p := range told {
			fmt.Fprintln(&list, p)
		}
		golden(t, name+".openworkflow.yaml", doc)
		golden(t, name+".notes.txt", []byte(list.String()))
		back, told, err := openworkflow.Import(doc)
		if err != nil || len(told) > 0 {
			t.Fatalf("%s: back: %v %v\n%s", name, err, told, doc)
		}
		before, _ := flow.Load(src, flow.Known{})
		after, _ := flow.Load(back, flow.Known{})
		if after.Name != before.Name || after.Description != before.Description || after.Timeout != before.Timeout {
			t.Errorf("%s: it comes back as %s, %q, %s", name, after.Name, after.Description, after.Timeout)
		}
		for _, input := range inputs[name] {
			for seed := range uint64(12) {
				trial := anyTrial(rand.New(rand.NewPCG(seed, 1)), before)
				a, b := done(before, input, trial), done(after, input, trial)
				if a != b {
					t.Fatalf("%s, input %s, seed %d: before\n%s\nafter\n%s\nthe file\n%s", name, input, seed, a, b, back)
				}
			}
		}
	}
}

// anyTrial lets steps give anything that the examples ask for, or fail.
func anyTrial(r *rand.Rand, p *flow.Plan) flow.Trial {
	t := flow.Trial{Outputs: map[string]json.RawMessage{}, Failures: map[string]flow.Failure{}}
	for _, s := range p.Steps {
		t.Outputs[s.ID] = json.RawMessage(fmt.Sprintf(`{"id":"%s-%d","userId":%d,"pixels":%d,"url":"/%s","width":%d,"height":7,"approved":true,"orderId":"o"}`, s.ID, r.IntN(9), r.IntN(9), r.IntN(2)*99_000_000, s.ID, r.IntN(900)))
		switch {
		case r.IntN(12) > 0:
		case s.Kind == flow.KindWait:
			t.TimedOut = append(t.TimedOut, s.ID)
		case s.Kind == flow.KindJob || s.Kind == flow.KindFlow:
			t.Failures[s.ID] = flow.Failure{Code: "handler", Message: "no " + s.ID}
		}
	}
	return t
}

// done is all that a run does, in words.
func done(p *flow.Plan, input string, trial flow.Trial) string {
	tried := p.Try(flow.NewInput(json.RawMessage(input)), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), trial)
	var lines []string
	for _, s := range tried.Sent {
		lines = append(lines, fmt.Sprintf("%s[%d] undo=%v %s %q queue=%q delay=%s group=%s %s timeout=%s retry=%+v reason=%q %s", s.Step, s.Item, s.Undo, s.Kind, s.Use, s.Queue, s.Delay, s.Group, s.LimitKey, s.Timeout, s.Retry, s.Reason, s.Payload))
	}
	slices.Sort(lines) // what stands side by side has no order
	return fmt.Sprintf("%s\n%s %s %+v", strings.Join(lines, "\n"), tried.Run.State, tried.Run.Output, tried.Run.Failure)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != string(got) {
		t.Errorf("%s (%v): it is now\n%s", file, err, got)
	}
}
