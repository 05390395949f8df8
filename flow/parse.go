package flow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse reads a file. All problems of its form are told at once; those of its
// meaning are Compile's. The definition is nil where there is nothing to go on with.
func Parse(src []byte) (*Definition, Problems) {
	d, r := parse(src)
	return d, r.problems.sorted()
}

func parse(src []byte) (*Definition, *reader) {
	r := &reader{places: map[string]place{}, fieldsAt: map[string][]string{}}
	root, problems := tree(src)
	r.problems = problems
	if root == nil {
		return nil, r
	}
	d := &Definition{Context: defaultContext, places: r.places}
	r.definition(d, root)
	return d, r
}

// reader turns nodes into a definition, and books what is wrong.
type reader struct {
	problems Problems
	places   map[string]place
	fieldsAt map[string][]string // what is allowed where, for the test of the schema
}

func (r *reader) wrong(n place, path, code, format string, args ...any) {
	r.problems = append(r.problems, Problem{Code: code, Line: n.line, Column: n.column, Path: path, Text: fmt.Sprintf(format, args...)})
}

// field of a map, and who reads it.
type field struct {
	name string
	read func(n *node, path string)
}

// fields reads a map. It is false when n is none.
func (r *reader) fields(n *node, path, what string, fields []field) bool {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	r.fieldsAt[what] = names
	r.places[path] = n.place
	if n.kind != isMap {
		r.wrong(n.place, path, CodeType, "%s is %s; a map is wanted, of: %s", what, n.kind, strings.Join(names, ", "))
		return false
	}
	for _, e := range n.entries {
		at := join(path, e.key)
		r.places[at] = e.value.place
		if e.value.line == 0 {
			r.places[at] = e.place
		}
		i := slices.Index(names, e.key)
		if i < 0 {
			r.wrong(e.place, at, CodeUnknownField, "%s has no field %q; there are: %s%s", what, e.key, strings.Join(names, ", "), near(e.key, names))
			continue
		}
		fields[i].read(e.value, at)
	}
	return true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// need books a field that is not there.
func (r *reader) need(n *node, path, key, why string) {
	if n.kind == isMap && n.get(key) == nil {
		r.wrong(n.place, path, CodeMissing, "%s is missing; %s", key, why)
	}
}

func (r *reader) text(to *string, most int) func(*node, string) {
	return func(n *node, path string) {
		switch {
		case n.kind != isString:
			r.wrong(n.place, path, CodeType, "%s is %s; text is wanted", path, n.kind)
		case n.text == "":
			r.wrong(n.place, path, CodeValue, "%s is empty; leave it out or say something", path)
		case len(n.text) > most:
			r.wrong(n.place, path, CodeLimit, "%s has %d bytes; at most %d are allowed", path, len(n.text), most)
		default:
			*to = n.text
		}
	}
}

// expr reads CEL. true and false may be written as they are.
func (r *reader) expr(to *string) func(*node, string) {
	return func(n *node, path string) {
		if n.kind == isBool || n.kind == isInt {
			*to = n.text
			return
		}
		r.text(to, MaxExprBytes)(n, path)
		*to = strings.TrimSpace(*to)
		if inner, ok := strings.CutPrefix(*to, "${"); ok && strings.HasSuffix(inner, "}") {
			*to = strings.TrimSpace(inner[:len(inner)-1])
		}
	}
}

func (r *reader) number(to *int, least, most int) func(*node, string) {
	return func(n *node, path string) {
		v, ok := n.value.(int64)
		switch {
		case !ok || n.kind != isInt:
			r.wrong(n.place, path, CodeType, "%s is %s; a whole number is wanted, %d to %d", path, n.kind, least, most)
		case v < int64(least) || v > int64(most):
			r.wrong(n.place, path, CodeValue, "%s is %d; %d to %d are allowed", path, v, least, most)
		default:
			*to = int(v)
		}
	}
}

func (r *reader) duration(to *time.Duration, most time.Duration) func(*node, string) {
	return func(n *node, path string) {
		d, ok := parseDuration(n.text)
		switch {
		case n.kind != isString || !ok:
			r.wrong(n.place, path, CodeType, "%s is not a duration; write one such as 500ms, 30s, 10m, 24h or 7d", path)
		case d <= 0 || d > most:
			r.wrong(n.place, path, CodeValue, "%s is %s; more than 0 and at most %s is allowed", path, n.text, days(most))
		default:
			*to = d
		}
	}
}

func days(d time.Duration) string {
	if d >= 24*time.Hour && d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	text := d.String() // 1h0m0s
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// parseDuration is time.ParseDuration, with d for 24 hours as the one unit.
func parseDuration(s string) (time.Duration, bool) {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		f, err := strconv.ParseFloat(n, 64)
		return time.Duration(f * float64(24*time.Hour)), err == nil && f < 10_000
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// list reads texts; one may stand without brackets.
func (r *reader) list(to *[]string, most int, what string) func(*node, string) {
	return func(n *node, path string) {
		items := n.items
		if n.kind == isString {
			items = []*node{n}
		} else if n.kind != isList {
			r.wrong(n.place, path, CodeType, "%s is %s; a list of %s is wanted", path, n.kind, what)
			return
		}
		if len(items) > most {
			r.wrong(n.place, path, CodeLimit, "%s has %d %s; at most %d are allowed", path, len(items), what, most)
			return
		}
		for i, item := range items {
			at := fmt.Sprintf("%s[%d]", path, i)
			r.places[at] = item.place
			s := ""
			r.text(&s, MaxNameBytes)(item, at)
			switch {
			case s == "":
			case slices.Contains(*to, s):
				r.wrong(item.place, at, CodeDuplicate, "%q is there twice; keep one of them", s)
			default:
				*to = append(*to, s)
			}
		}
	}
}

func (r *reader) definition(d *Definition, n *node) {
	var layout *node
	ok := r.fields(n, "", "a flow", []field{
		{"flow", r.name(&d.Name)},
		{"version", r.number(&d.Version, 1, 1<<30)},
		{"description", r.text(&d.Description, 4<<10)},
		{"input", func(n *node, path string) { d.Input = n.json() }},
		{"output", r.value(&d.Output)},
		{"timeout", r.duration(&d.Timeout, MaxWait)},
		{"context", r.number(&d.Context, 1<<10, MaxContextBytes)},
		{"steps", func(n *node, path string) { r.steps(d, n, path) }},
		{"layout", func(n *node, _ string) { layout = n }}, // when all steps are known
	})
	if !ok {
		return
	}
	if layout != nil {
		r.layout(d, layout, "layout")
	}
	r.need(n, "", "flow", "it is the name by which the flow is started")
	r.need(n, "", "steps", "a flow has at least one step")
}

// name reads the name of a flow.
func (r *reader) name(to *string) func(*node, string) {
	return func(n *node, path string) {
		r.text(to, MaxNameBytes)(n, path)
		for i, c := range *to {
			if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.' && i > 0) {
				r.wrong(n.place, path, CodeValue, "the name %q has %q; A-Z a-z 0-9 - _ and . (not first) are allowed", *to, c)
				return
			}
		}
	}
}

func (r *reader) steps(d *Definition, n *node, path string) {
	if n.kind != isMap || len(n.entries) == 0 {
		r.wrong(n.place, path, CodeType, "steps is %s; a map of steps is wanted, each under its id", n.kind)
		return
	}
	if len(n.entries) > MaxSteps {
		r.wrong(n.place, path, CodeLimit, "there are %d steps; at most %d are allowed: use a for_each or a sub-flow", len(n.entries), MaxSteps)
		return
	}
	for _, e := range n.entries {
		at := join(path, e.key)
		r.places[at] = e.place
		if text := badStepID(e.key); text != "" {
			r.wrong(e.place, at, CodeValue, "%s", text)
			continue
		}
		s := Step{ID: e.key}
		r.step(&s, e.value, at)
		r.places[at] = e.place
		d.Steps = append(d.Steps, s)
	}
}

// reserved words of CEL cannot be names there.
var reserved = strings.Fields("as break const continue else false for function if import in let loop namespace null package return true var void while")

func badStepID(id string) string {
	if id == "" || len(id) > MaxStepBytes {
		return fmt.Sprintf("the step's id %q has %d bytes; 1 to %d are allowed", id, len(id), MaxStepBytes)
	}
	for i, c := range id {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || '0' <= c && c <= '9' && i > 0) {
			return fmt.Sprintf("the step's id %q has %q; A-Z a-z 0-9 _ are allowed, a letter first, since expressions name steps (steps.my_step.output)", id, c)
		}
	}
	if slices.Contains(reserved, id) {
		return fmt.Sprintf("%q is a reserved word of CEL; give the step another id", id)
	}
	return ""
}
