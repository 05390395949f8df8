package flow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"

	"github.com/forebayhq/forebay"
)

// Sample is what is assumed of a run to see what its expressions would give.
type Sample struct {
	Input   json.RawMessage            // empty: null
	Outputs map[string]json.RawMessage // by step; the others have none
	Item    json.RawMessage            // of a for_each
	Event   json.RawMessage            // of a wait
}

// Name is something that an expression may use.
type Name struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"` // empty: any
}

// bounds of what is offered.
const (
	maxNames = 500
	maxDeep  = 6
)

// Draft is a step of a file that is still being written, with what its expressions may
// use. It takes a file that has other problems, so long as its lines make no circle.
type Draft struct {
	c     *compiler
	scope scope
}

// NewDraft finds a step in a file; empty: the output of the flow.
func NewDraft(src []byte, known Known, step string) (*Draft, error) {
	d, problems := Parse(src)
	if d == nil {
		return nil, problems
	}
	c := &compiler{Plan: &Plan{Definition: d, byID: map[string]*vertex{}, uses: map[string]bool{}}, known: known}
	for i := range d.Steps {
		v := &vertex{Step: &d.Steps[i], n: i}
		c.steps = append(c.steps, v)
		c.byID[v.ID] = v
	}
	if c.edges(); !c.cyclic {
		c.order()
	}
	if c.cyclic {
		return nil, c.problems[len(c.problems)-1:]
	}
	l, err := newLanguage(d.Input)
	if err != nil {
		return nil, err
	}
	c.language = l
	c.results()
	draft := &Draft{c: c, scope: scope{step: step, ancestors: c.allIDs()}}
	if v := c.byID[step]; v != nil {
		draft.scope = scope{step: step, ancestors: c.ids(v.ancestors), item: v.ForEach != nil, event: v.Kind == KindWait}
	} else if step != "" {
		return nil, forebay.Errorf(forebay.CodeNotFound, "", "there is no step %s in the file", step)
	}
	return draft, nil
}

// Expression gives what an expression would give.
func (d *Draft) Expression(source string, s Sample) (json.RawMessage, error) {
	env, err := d.c.language.envOf(d.scope)
	if err != nil {
		return nil, err
	}
	p, err := compile(env, source)
	if err != nil {
		return nil, err
	}
	vars, err := d.vars(s)
	if err != nil {
		return nil, err
	}
	v, err := p.eval(vars)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = encode(&out, v)
	return out.Bytes(), err
}

// Value gives what data with ${expressions} in it would be.
func (d *Draft) Value(raw json.RawMessage, s Sample) (json.RawMessage, error) {
	root, problems := tree(raw)
	if len(problems) > 0 {
		return nil, problems
	}
	r := &reader{places: map[string]place{}, fieldsAt: map[string][]string{}}
	v := r.valueOf(root, "value")
	if len(r.problems) > 0 {
		return nil, errors.New(r.problems[0].Text)
	}
	d.c.problems = nil
	t := d.c.template(d.scope, v)
	if len(d.c.problems) > 0 {
		return nil, errors.New(d.c.problems[0].Text)
	}
	vars, err := d.vars(s)
	if err != nil {
		return nil, err
	}
	return t.fill(vars)
}

func (d *Draft) vars(s Sample) (map[string]any, error) {
	l := d.c.language
	vars := map[string]any{
		"run":   map[string]any{"id": "dry-run", "flow": d.c.Name, "version": int64(max(1, d.c.Version)), "started": time.Unix(0, 0).UTC()},
		"index": int64(0),
	}
	for name, one := range map[string]struct {
		raw json.RawMessage
		t   *types.Type
	}{"input": {s.Input, l.input}, "item": {s.Item, dyn}, "event": {s.Event, dyn}} {
		v, err := l.types.decode(one.raw, one.t)
		if err != nil {
			return nil, fmt.Errorf("the sample of %s is %w", name, err)
		}
		vars[name] = v
	}
	steps := map[string]any{}
	for _, id := range d.scope.ancestors {
		v, err := l.types.decode(s.Outputs[id], dyn)
		if err != nil {
			return nil, fmt.Errorf("the sample of %s is %w", id, err)
		}
		steps[id] = map[string]any{"state": string(StepCompleted), "output": v}
	}
	vars["steps"] = steps
	return vars, nil
}

// Names are what an expression there may use: by the schemas of the input and of what
// handlers give, and by what stands in the sample.
func (d *Draft) Names(s Sample) []Name {
	l := d.c.language
	n := &names{of: l.types, all: map[string]string{}, whole: map[string]bool{}}
	n.add("input", l.input, 0)
	n.add("run", l.run, 0)
	n.sample("input", s.Input)
	for _, id := range d.scope.ancestors {
		n.add("steps."+id, types.NewObjectType(l.step(id)), 0)
		n.sample("steps."+id+".output", s.Outputs[id])
	}
	if d.scope.item {
		n.add("item", dyn, 0)
		n.add("index", types.IntType, 0)
		n.sample("item", s.Item)
	}
	if d.scope.event {
		n.add("event", dyn, 0)
		n.sample("event", s.Event)
	}
	list := make([]Name, 0, len(n.all))
	for name, t := range n.all {
		list = append(list, Name{name, t})
	}
	slices.SortFunc(list, func(a, b Name) int {
		return cmp.Or(cmp.Compare(strings.Count(a.Name, "."), strings.Count(b.Name, ".")), strings.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), maxNames)]
}

// names are found in types and in values.
type names struct {
	of    *objects
	all   map[string]string
	whole map[string]bool // objects whose members are all known by their type
}

func (n *names) add(name string, t *types.Type, depth int) {
	fields := n.of.fields[t.TypeName()]
	n.whole[name] = fields != nil
	switch {
	case t.Kind() == types.DynKind || fields != nil:
		n.all[name] = cmp.Or(n.all[name], "")
	default:
		n.all[name] = t.String()
	}
	if depth == maxDeep {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if badStepID(key) == "" { // else it is written in brackets
			n.add(name+"."+key, fields[key], depth+1)
		}
	}
}

// sample adds the members of an object that is known by its value.
func (n *names) sample(name string, raw json.RawMessage) {
	var members map[string]json.RawMessage
	if strings.Count(name, ".") > maxDeep || json.Unmarshal(raw, &members) != nil {
		return
	}
	for key, v := range members {
		at := name + "." + key
		_, known := n.all[at]
		if badStepID(key) != "" || !known && n.whole[name] {
			continue
		}
		if !known {
			n.all[at] = kindOf(v)
		}
		n.sample(at, v)
	}
}

func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	case '[':
		return "list"
	case '{', 'n':
		return ""
	}
	return "number"
}
