// Package schema holds data against JSON Schemas (2020-12 unless they say otherwise).
//
// It promises that each thing that does not fit is told with its place, and that data of
// which a part is not known yet is judged by what is known of it only: nothing is said
// against what may still fit.
//
// It refuses to load anything: a schema is whole. It also refuses to work for long: a
// validation has a budget of steps, whatever the schema and the data are.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Enforce is the member of a schema by which data that does not fit is refused where it
// comes in, not only told.
const Enforce = "x-enforce"

// Schema is one that was compiled. It is safe for concurrent use.
type Schema struct {
	build    func() (*way, error)
	idle     chan *way // those that nobody uses, nil: one that is not made yet
	enforced bool
	hard     bool // it has words that cannot be judged by a part of the data
}

// Misfit is one thing that does not fit.
type Misfit struct {
	Path []string // from the root, each a key or an index
	Text string
}

// maxMisfits bounds what one check tells.
const maxMisfits = 100

// Compile reads a schema; nil where raw is empty, which anything fits.
func Compile(raw json.RawMessage) (*Schema, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if depth, _, _ := scan(raw); depth > maxDepth {
		return nil, fmt.Errorf("objects and lists lie in each other more than %d deep", maxDepth)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if at, ok := extreme(doc, nil); ok {
		return nil, fmt.Errorf("at /%s: %s", strings.Join(at, "/"), numberRule)
	}
	if n := objects(doc); n > maxObjects {
		return nil, fmt.Errorf("it has %d objects; %d are allowed", n, maxObjects)
	}
	s, err := Load(address, func(c *jsonschema.Compiler) error {
		c.UseLoader(noLoader{})
		return c.AddResource(address, doc)
	})
	if err != nil {
		return nil, err
	}
	if top, ok := doc.(map[string]any); ok {
		s.enforced = top[Enforce] == true
	}
	for _, word := range []string{`"if"`, `"not"`, `"dependentSchemas"`, `"contains"`, `"unevaluatedProperties"`, `"unevaluatedItems"`} {
		s.hard = s.hard || bytes.Contains(raw, []byte(word))
	}
	return s, s.probe()
}

// Load compiles the schema that has an address, which with gives to each compiler: the same
// each time.
func Load(address string, with func(*jsonschema.Compiler) error) (*Schema, error) {
	s := &Schema{idle: make(chan *way, runtime.GOMAXPROCS(0)), build: func() (*way, error) { return newWay(address, with) }}
	first, err := s.build()
	if err != nil {
		return nil, unsound(err)
	}
	s.idle <- first
	for range cap(s.idle) - 1 {
		s.idle <- nil
	}
	return s, nil
}

// probe refuses a schema that is too costly for any data.
func (s *Schema) probe() error {
	for _, data := range []string{"{}", "[]", `""`, "0", "null"} {
		if _, err := s.Check([]byte(data)); err != nil {
			return fmt.Errorf("it is too costly: to hold it against %s alone takes more than %d steps", data, stepsAtLeast)
		}
	}
	return nil
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
	return fmt.Errorf("at /%s: %s", strings.Join(leaf.InstanceLocation, "/"), Said(leaf.DetailedOutput().Error.String()))
}

// noLoader reads nothing from elsewhere.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a schema cannot refer to " + url)
}

// Enforced tells whether data that does not fit is to be refused.
func (s *Schema) Enforced() bool { return s != nil && s.enforced }

// Check gives what does not fit, in the order of the places; none: it fits. Data that is
// no JSON does not fit. An error (CodeTooLarge) tells that it takes too many steps to know.
func (s *Schema) Check(data []byte) ([]Misfit, error) { return s.Partly(data, nil) }

// Partly is Check for data of which the values at some places (see Place) are not known.
// What stands there is of the type that the value will have, and null where not even that
// is known.
func (s *Schema) Partly(data []byte, unknown []string) ([]Misfit, error) {
	if s == nil || s.hard && len(unknown) > 0 {
		return nil, nil
	}
	bad, other, err := s.Judge(data)
	switch {
	case err != nil:
		return nil, err
	case other != nil && (len(unknown) == 0 || other.Text != tooMany):
		return []Misfit{*other}, nil
	case bad == nil:
		return nil, nil
	}
	j := judge{unknown: unknown}
	j.walk(bad)
	slices.SortStableFunc(j.found, func(a, b Misfit) int { return strings.Compare(Place(a.Path), Place(b.Path)) })
	return j.found, nil
}

// Place writes a path as one text.
func Place(path []string) string { return strings.Join(path, "\x00") }

type judge struct {
	unknown []string
	found   []Misfit
}

func (j *judge) walk(e *jsonschema.ValidationError) {
	if len(j.found) >= maxMisfits {
		return
	}
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
	j.found = append(j.found, Misfit{e.InstanceLocation, Said(e.DetailedOutput().Error.String())})
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
