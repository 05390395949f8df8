package schema

import (
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A validation has so many steps: some, and more for each byte of the data. A step is one
// schema held against one value, or about as much work.
const (
	stepsAtLeast = 100_000
	stepsPerByte = 4
)

// meter counts the steps of one validation. At the end of its budget it panics with spent:
// the library has no other way out of a validation, and holds nothing that would have to
// be given back.
type meter struct {
	left   int
	places int // how many schemas may yet be held against a value, each of which may fail
}

type spent struct{}

func (m *meter) take(n int) {
	if m.left -= n; m.left < 0 {
		panic(spent{})
	}
}

// hold is take for steps that may each leave a failure in memory.
func (m *meter) hold(n int) {
	m.take(n)
	if m.places -= n; m.places < 0 {
		panic(spent{})
	}
}

// weight is what the schemas below one cost where it is held against a value. Each is paid
// by the one above, since it may end before its own hook is asked.
type weight struct {
	any            int // whatever the value is
	object, member int // an object, and each of its members
	array, item    int // an array, and each of its items
	copies         int // how often what is not judged yet is noted down
}

// hook has a schema count its steps: the library asks for the format early, of any value.
func (w *weight) hook(s *jsonschema.Schema, m *meter) {
	of, own := s.Format, *w
	f := &jsonschema.Format{}
	if of != nil {
		f.Name = of.Name
	}
	f.Validate = func(v any) error {
		n := own.any
		switch v := v.(type) {
		case map[string]any:
			n += own.object + len(v)*(own.member+own.copies)
		case []any:
			n += own.array + len(v)*(own.item+own.copies)
		case string:
			n += len(v) / 64
		case json.Number:
			n += digits(string(v)) / 16
		}
		m.hold(n)
		if of == nil {
			return nil
		}
		return formatted(of, v, m)
	}
	s.Format = f
}

// digits is about how long a number is when it is written out.
func digits(number string) int {
	n := len(number)
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		power, _ := strconv.Atoi(number[i+1:])
		n += max(power, -power)
	}
	return n
}

func formatted(of *jsonschema.Format, v any, m *meter) error {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	m.take(len(s) / 4)
	if of.Name == "regex" {
		_, err := m.pattern(s)
		return err
	}
	return of.Validate(v)
}

// maxProgram bounds a regular expression, in instructions of its program.
const maxProgram = 10_000

// pattern is a regular expression that counts its steps.
type pattern struct {
	*regexp.Regexp
	size  int
	meter *meter
}

func (m *meter) pattern(text string) (jsonschema.Regexp, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	n := program(tree)
	if n > maxProgram {
		return nil, fmt.Errorf("about %d parts when its repeats are written out, at most %d are allowed", n, maxProgram)
	}
	m.take(n)
	compiled, err := regexp.Compile(text)
	return pattern{compiled, n, m}, err
}

// MatchString takes at most the length of the text times the size of the program.
func (p pattern) MatchString(s string) bool {
	p.meter.take(1 + len(s)*p.size/64)
	return p.Regexp.MatchString(s)
}

// program is about how many instructions an expression becomes.
func program(t *syntax.Regexp) int {
	n := 1 + len(t.Rune)
	for _, sub := range t.Sub {
		n += program(sub)
	}
	if t.Op == syntax.OpRepeat {
		n *= max(t.Min, t.Max, 1)
	}
	return min(n, 1<<40)
}

// size of a value, in steps.
func (m *meter) size(v any) {
	switch v := v.(type) {
	case map[string]any:
		m.take(1 + len(v))
		for _, one := range v {
			m.size(one)
		}
	case []any:
		m.take(1 + len(v))
		for _, one := range v {
			m.size(one)
		}
	case string:
		m.take(1 + len(v)/64)
	default:
		m.take(1)
	}
}
