package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("flow.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("flow.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func valid(t *testing.T, s *jsonschema.Schema, raw []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func exampleTrees(t *testing.T) map[string]*node {
	t.Helper()
	names, _ := filepath.Glob("../examples/flows/*.yaml")
	all := map[string]*node{}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		root, problems := tree(src)
		if len(problems) > 0 {
			t.Fatal(name, problems)
		}
		all[name] = root
	}
	return all
}

func TestSchemaHoldsForTheExamples(t *testing.T) {
	s := compiledSchema(t)
	for name, root := range exampleTrees(t) {
		if err := valid(t, s, root.json()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// everything names every map that the parser knows.
const everything = `flow: f
version: 1
steps:
  a: {use: x, for_each: {in: input.l}, retry: {attempts: 2}, on_failure: {goto: e}, compensate: {use: y}}
  b: {needs: a, wait: {event: {type: e}, timeout: 1s}}
  c: {needs: a, wait: {approval: {role: r}, timeout: 1s}}
  d: {delay: {for: 1s}}
  e: {emit: {type: t}}
  f: {flow: {name: g}}
  g: {branch: [{to: h}]}
  h: {use: x}
layout: {steps: {a: {x: 1, y: -2}}, notes: {n: {x: 1, y: 2, text: t, width: 200, height: 60}}, groups: {g: {title: t, steps: [a, b], collapsed: true}}}
`

func TestSchemaAndParserKnowTheSameFields(t *testing.T) {
	_, r := parse([]byte(everything))
	if len(r.problems) > 0 {
		t.Fatal(r.problems)
	}
	var doc map[string]any
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	at := func(path string) []string {
		var v any = doc
		for key := range strings.SplitSeq(path, "/") {
			if list, ok := v.([]any); ok {
				v = list[1]
				continue
			}
			v = v.(map[string]any)[key]
		}
		return slices.Sorted(maps.Keys(v.(map[string]any)))
	}
	step := "$defs/step/properties/"
	for what, paths := range map[string][]string{
		"a flow":               {"properties"},
		"a step":               {"$defs/step/properties"},
		"retry":                {"$defs/retry/properties"},
		"a goto":               {"$defs/goto/properties"},
		"a case":               {"$defs/case/properties"},
		"a compensation":       {"$defs/compensation/properties"},
		"a wait":               {step + "wait/properties"},
		"an event to wait for": {step + "wait/properties/event/oneOf/1/properties"},
		"an approval":          {step + "wait/properties/approval/oneOf/1/properties"},
		"a sub-flow":           {step + "flow/oneOf/1/properties"},
		"an event to emit":     {step + "emit/oneOf/1/properties"},
		"a for_each":           {step + "for_each/oneOf/1/properties"},
		"a layout":             {"$defs/layout/properties"},
		"a place":              {"$defs/place/properties"},
		"a note":               {"$defs/note/properties"},
		"a group":              {"$defs/group/properties"},
		"a delay":              nil, // for and until, each alone
	} {
		if paths == nil {
			delete(r.fieldsAt, what)
			continue
		}
		if ours, theirs := slices.Sorted(slices.Values(r.fieldsAt[what])), at(paths[0]); !slices.Equal(ours, theirs) {
			t.Errorf("%s: the parser knows %v, the schema %v", what, ours, theirs)
		}
		delete(r.fieldsAt, what)
	}
	for what := range r.fieldsAt {
		t.Errorf("no comparison of %s", what)
	}
}

// What the schema refuses, the parser refuses too: files are changed at random.
func TestSchemaRefusesNothingThatIsAllowed(t *testing.T) {
	s := compiledSchema(t)
	var files [][]byte
	for _, root := range exampleTrees(t) {
		files = append(files, root.json())
	}
	slices.SortFunc(files, bytes.Compare)
	refused := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 7))
		root, _ := tree(files[r.IntN(len(files))])
		mutate(r, root)
		raw := root.json()
		err := valid(t, s, raw)
		_, problems := Parse(raw)
		if err == nil {
			continue
		}
		refused++
		if len(problems.Errors()) == 0 {
			t.Fatalf("seed %d: the schema refuses what the parser takes: %v\n%s", seed, err, raw)
		}
	}
	if refused < 100 {
		t.Errorf("only %d of the changed files are wrong: the test shows little", refused)
	}
}

// mutate changes one thing outside of JSON Schemas and data, which may be anything.
func mutate(r *rand.Rand, n *node) {
	for range 1 + r.IntN(6) {
		if n.kind == isMap && len(n.entries) > 0 {
			e := &n.entries[r.IntN(len(n.entries))]
			if slices.Contains([]string{"input", "with", "output", "data", "layout", "form", "description", "version"}, e.key) {
				return
			}
			if r.IntN(8) == 0 {
				e.key = []string{"usee", "needs", "timeout", e.key + "x"}[r.IntN(4)]
				return
			}
			if r.IntN(12) == 0 {
				n.entries = slices.DeleteFunc(n.entries, func(o entry) bool { return o.key == e.key })
				return
			}
			n = e.value
			continue
		}
		if n.kind == isList && len(n.items) > 0 {
			n = n.items[r.IntN(len(n.items))]
			continue
		}
		break
	}
	*n = []node{
		{kind: isString, text: "x"}, {kind: isString, text: ""}, {kind: isInt, value: int64(r.IntN(2000)), text: "7"}, {kind: isNull},
		{kind: isBool, value: true, text: "true"}, {kind: isList}, {kind: isMap}, {kind: isFloat, value: 0.5, text: "0.5"},
		{kind: isString, text: fmt.Sprintf("%ds", r.IntN(100))}, {kind: isString, text: strings.Repeat("long", 100)},
	}[r.IntN(10)]
}
