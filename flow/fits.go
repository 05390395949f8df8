package flow

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"

	"github.com/forebayhq/forebay/internal/schema"
)

// fits compares what a handler gets with what it says that it takes, as far as that is
// known before a run. own: where the data is in the file; use: where the handler is named.
func (c *compiler) fits(kind, queue string, v *Value, t *template, own, use string) {
	if kind == "" || c.known.Data == nil {
		return
	}
	s := &sketch{programs: t.compiled()}
	doc := json.RawMessage(`{"input":null,"steps":null}`) // the context
	if v == nil {
		s.unknown, own = []string{"input", "steps"}, use
	} else {
		doc = s.of(v, nil)
	}
	for _, bad := range c.known.Data(cmp.Or(queue, DefaultQueue), kind, doc, s.unknown) {
		path := own
		if v != nil {
			path = c.nearest(own, bad.Path)
		}
		what := "the data"
		if len(bad.Path) > 0 {
			what = strings.Join(bad.Path, ".")
		}
		c.wrong(path, CodeData, "%s does not fit what %s says that it takes: %s", what, kind, bad.Text)
	}
}

// nearest is the path in the file of a place in a value, or of what it would be in.
func (c *compiler) nearest(path string, keys []string) string {
	for _, key := range keys {
		next := path + "." + key
		if _, ok := c.places[next]; !ok {
			next = path + "[" + key + "]"
		}
		if _, ok := c.places[next]; !ok {
			break
		}
		path = next
	}
	return path
}

// sketch is a value as far as it is known without a run.
type sketch struct {
	programs map[string]*program
	unknown  []string // places of what is not known
}

func (s *sketch) of(v *Value, path []string) json.RawMessage {
	switch {
	case v.isMap:
		doc := make(map[string]json.RawMessage, len(v.keys))
		for i, key := range v.keys {
			doc[key] = s.of(v.items[i], append(slices.Clone(path), key))
		}
		return written(doc)
	case v.items != nil:
		list := make([]json.RawMessage, len(v.items))
		for i, item := range v.items {
			list[i] = s.of(item, append(slices.Clone(path), strconv.Itoa(i)))
		}
		return written(list)
	case v.parts == nil:
		return v.literal
	}
	s.unknown = append(s.unknown, schema.Place(path))
	if len(v.parts) > 1 {
		return json.RawMessage(`""`)
	}
	p := s.programs[v.parts[0].expr]
	if p == nil { // it does not compile, which is told elsewhere
		return json.RawMessage("null")
	}
	return like(p.gives)
}

func written(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // raw values that were read always can
		return json.RawMessage("null")
	}
	return b
}

// like is a value of a type, as JSON; null: it may be of any.
func like(t *types.Type) json.RawMessage {
	switch t.Kind() {
	case types.StringKind, types.TimestampKind, types.DurationKind, types.BytesKind:
		return json.RawMessage(`""`)
	case types.BoolKind:
		return json.RawMessage("false")
	case types.IntKind, types.UintKind, types.DoubleKind:
		return json.RawMessage("0")
	case types.ListKind:
		return json.RawMessage("[]")
	case types.MapKind, types.StructKind:
		return json.RawMessage("{}")
	}
	return json.RawMessage("null")
}

// compiled are the programs of a template that may be none.
func (t *template) compiled() map[string]*program {
	if t == nil {
		return nil
	}
	return t.programs
}

// results gives what is known of the steps' outputs to the expressions. A step of many
// items gives a list in which some may be missing; of that nothing is said.
func (c *compiler) results() {
	if c.known.Result == nil {
		return
	}
	o := c.language.types
	o.loose = true
	defer func() { o.loose = false }()
	for _, v := range c.steps {
		if v.Kind != KindJob || v.ForEach != nil {
			continue
		}
		raw := c.known.Result(cmp.Or(v.Queue, DefaultQueue), v.Use)
		if raw == nil {
			continue
		}
		if t := o.ofSchema(raw, "the output of "+v.ID, 0); t.Kind() == types.StructKind {
			o.add("step "+v.ID, map[string]*types.Type{"state": types.StringType, "output": t, "error": o.fields["step"]["error"]})
		}
	}
}

// step is the name of the type of a step.
func (l *language) step(id string) string {
	if _, ok := l.types.fields["step "+id]; ok {
		return "step " + id
	}
	return "step"
}
