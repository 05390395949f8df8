// Package schema holds data against JSON Schemas (2020-12 unless they say otherwise).
//
// It promises that each thing that does not fit is told with its place, and that data of
// which a part is not known yet is judged by what is known of it only: nothing is said
// against what may still fit.
//
// It refuses to load anything: a schema is whole.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Enforce is the member of a schema by which data that does not fit is refused where it
// comes in, not only told.
const Enforce = "x-enforce"

// Schema is one that was compiled. It is read-only and safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	enforced bool
	hard     bool // it has words that cannot be judged by a part of the data
}

// Misfit is one thing that does not fit.
type Misfit struct {
	Path []string // from the root, each a key or an index
	Text string
}

// Compile reads a schema; nil where raw is empty, which anything fits.
func Compile(raw json.RawMessage) (*Schema, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if deeper(raw, maxDepth) {
		return nil, fmt.Errorf("objects and lists lie in each other more than %d deep", maxDepth)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(address, doc); err != nil {
		return nil, err
	}
	s := &Schema{}
	if s.compiled, err = c.Compile(address); err != nil {
		return nil, unsound(err)
	}
	if top, ok := doc.(map[string]any); ok {
		s.enforced = top[Enforce] == true
	}
	for _, word := range []string{`"if"`, `"not"`, `"dependentSchemas"`, `"contains"`, `"unevaluatedProperties"`, `"unevaluatedItems"`} {
		s.hard = s.hard || bytes.Contains(raw, []byte(word))
	}
	return s, nil
}

// maxDepth bounds a schema, whose compiling takes the square of its depth.
const maxDepth = 64

// deeper tells whether JSON has more levels than so many.
func deeper(raw []byte, most int) bool {
	depth, text := 0, false
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case text && b == '\\':
			i++
		case b == '"':
			text = !text
		case text:
		case b == '{' || b == '[':
			if depth++; depth > most {
				return true
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return false
}

// address is where a schema is as far as the compiler knows.
const address = "mem:///schema"

// unsound says in one line what is wrong with a schema.
func unsound(err error) error {
	var bad *jsonschema.SchemaValidationError
	var why *jsonschema.ValidationError
	if !errors.As(err, &bad) || !errors.As(bad.Err, &why) {
		return err
	}
	leaf := deepest(why)
	return fmt.Errorf("at /%s: %s", strings.Join(leaf.InstanceLocation, "/"), leaf.DetailedOutput().Error)
}

// noLoader reads nothing from elsewhere.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a schema cannot refer to " + url)
}

// Enforced tells whether data that does not fit is to be refused.
func (s *Schema) Enforced() bool { return s != nil && s.enforced }

// Check gives what does not fit, in the order of the places; none: it fits. Data that is
// no JSON does not fit.
func (s *Schema) Check(data []byte) []Misfit { return s.Partly(data, nil) }

// Partly is Check for data of which the values at some places (see Place) are not known.
// What stands there is of the type that the value will have, and null where not even that
// is known.
func (s *Schema) Partly(data []byte, unknown []string) []Misfit {
	if s == nil || s.hard && len(unknown) > 0 {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return []Misfit{{Text: "not JSON: " + err.Error()}}
	}
	var bad *jsonschema.ValidationError
	if !errors.As(s.compiled.Validate(doc), &bad) {
		return nil
	}
	j := judge{unknown: unknown}
	j.walk(bad)
	slices.SortStableFunc(j.found, func(a, b Misfit) int { return strings.Compare(Place(a.Path), Place(b.Path)) })
	return j.found
}

// Place writes a path as one text.
func Place(path []string) string { return strings.Join(path, "\x00") }

type judge struct {
	unknown []string
	found   []Misfit
}

func (j *judge) walk(e *jsonschema.ValidationError) {
	at, within := j.look(e.InstanceLocation)
	if k, ok := e.ErrorKind.(*kind.Type); at && !(ok && k.Got != "null") && len(e.Causes) == 0 {
		return
	}
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if at || within { // which of them is meant depends on what is not known
			return
		}
		if len(e.Causes) > 0 { // of many ways in which it fits none, the first
			e = deepest(e)
		}
	default:
		for _, c := range e.Causes {
			j.walk(c)
		}
		if len(e.Causes) > 0 || within && !structural(e.ErrorKind) {
			return
		}
	}
	j.found = append(j.found, Misfit{e.InstanceLocation, e.DetailedOutput().Error.String()})
}

// look tells whether a place is, or is within, what is not known; and whether something
// within it is not.
func (j *judge) look(path []string) (at, within bool) {
	here := Place(path)
	for _, u := range j.unknown {
		at = at || u == "" || u == here || strings.HasPrefix(here, u+"\x00")
		within = within || here == "" || strings.HasPrefix(u, here+"\x00")
	}
	return at, within
}

// structural problems are of the members of an object or a list, whatever their values.
func structural(k jsonschema.ErrorKind) bool {
	switch k.(type) {
	case *kind.Type, *kind.Required, *kind.AdditionalProperties, *kind.FalseSchema, *kind.DependentRequired, *kind.PropertyNames,
		*kind.MinProperties, *kind.MaxProperties, *kind.MinItems, *kind.MaxItems, *kind.AdditionalItems:
		return true
	}
	return false
}

// deepest is the cause that comes furthest into the data: most likely what was meant.
func deepest(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	best := e
	for _, c := range e.Causes {
		if d := deepest(c); best == e || len(d.InstanceLocation) > len(best.InstanceLocation) {
			best = d
		}
	}
	return best
}
