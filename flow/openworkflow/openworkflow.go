// Package openworkflow is the bridge between our flows and the Open Workflow
// specification (its DSL 1.0, earlier known as Serverless Workflow).
//
//	doc, notes, err := openworkflow.Export(src)
//	src, notes, err := openworkflow.Import(doc)
//
// # What crosses
//
//	our step             Open Workflow
//	use                  call, with its retry as try/catch
//	branch               switch
//	parallel, join       fork
//	for_each             for
//	delay                wait
//	wait for an event    listen
//	flow                 run: {workflow}
//	emit                 emit
//	dead_letter          raise
//	when                 if
//	-                    set: put in where it is used
//	on_failure: skip     try, catch
//	on_failure: goto     catch: {do} (import)
//
// Expressions are translated between CEL and the part of jq that says the same: paths,
// comparisons, and, or, not, arithmetic, if, has, length, tostring, texts with
// expressions in them, maps and lists.
//
// # Promises and refusals
//
// What is written is sound: an imported file loads, and a run of it sends what the
// document says. What cannot cross is told, each with code, place and a sentence:
// as a warning where the rest holds without it, as an error where the result would do
// something else. A warning is never silent. What only we know is kept under
// metadata.forebay of its task, where other programs ignore it, and comes back with an
// import. Anchors, depth and size are bounded as in a file of ours.
//
// It does no I/O, and does not run documents: call: http and its like become jobs of
// that kind, for which there must be a handler.
package openworkflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/forebayhq/forebay/flow"
)

// CodeNotPortable is what cannot cross.
const CodeNotPortable = "not_portable"

// Version of the DSL that is written.
const Version = "1.0.3"

// own is the key of our metadata.
const own = "forebay"

// object is a map in the order in which it is written.
type object []field

type field struct {
	key   string
	value any // object, []any, string, bool, nil, json.Number, json.RawMessage or a number
}

func (o object) get(key string) any {
	for _, f := range o {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

func (o object) has(key string) bool {
	return slices.ContainsFunc(o, func(f field) bool { return f.key == key })
}

// set puts a value in place or at the end.
func (o *object) set(key string, value any) {
	for i := range *o {
		if (*o)[i].key == key {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, field{key, value})
}

// MarshalJSON keeps the order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := encode(f.key)
		if err != nil {
			return nil, err
		}
		value, err := encode(f.value)
		if err != nil {
			return nil, err
		}
		b.Write(append(append(key, ':'), value...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// decode reads JSON with the order of its maps and its numbers as they are written.
func decode(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return decodeNext(d)
}

func decodeNext(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		out := object{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			out = append(out, field{fmt.Sprint(key), v})
		}
		_, err = d.Token()
		return out, err
	case json.Delim('['):
		out := []any{}
		for d.More() {
			v, err := decodeNext(d)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err = d.Token()
		return out, err
	}
	return t, nil
}

// notes are what is told of a crossing.
type notes struct {
	problems flow.Problems
	places   map[string]flow.Place
}

func (n *notes) say(warning bool, path, format string, args ...any) {
	at := n.placeOf(path)
	p := flow.Problem{Code: CodeNotPortable, Warning: warning, Line: at.Line, Column: at.Column, Path: path, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(n.problems, p) {
		n.problems = append(n.problems, p)
	}
}

// placeOf is that of a value, or of what it is in.
func (n *notes) placeOf(path string) flow.Place {
	for path != "" {
		if at, ok := n.places[path]; ok && at.Line > 0 {
			return at
		}
		i := len(path) - 1
		for i > 0 && path[i] != '.' && path[i] != '[' {
			i--
		}
		path = path[:i]
	}
	return n.places[""]
}

func (n *notes) sorted() flow.Problems {
	slices.SortStableFunc(n.problems, func(a, b flow.Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return n.problems
}
