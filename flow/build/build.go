// Package build writes flows in Go, for programs that would rather not carry a file.
//
//	f := build.New("signup")
//	create := f.Job("create", "create-user").With("${input}").Retry(5, time.Second, time.Minute)
//	f.Job("welcome", "send-mail").After(create).Queue("notifications").OnFailure(flow.Skip)
//	src, err := f.Source()
//
// It promises that what is built is a file as people write it, checked by the same code:
// it can be stored, shown, compared and edited like any other, and problems name their
// step. Values hold expressions as in a file: a text that is ${expression} gives its
// value.
//
// It refuses to know more than the file does: there are no Go functions in a flow, and
// nothing is checked before Source.
package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/flow"
)

// Flow is a flow that is being built. It is not safe for concurrent use.
type Flow struct {
	name   string
	fields fields
	steps  []*Step
}

// New begins a flow.
func New(name string) *Flow { return &Flow{name: name} }

// Description says what it is for.
func (f *Flow) Description(text string) *Flow { return f.set("description", text) }

// Input is the JSON Schema of what a run begins with: a text or any value that gives
// one as JSON.
func (f *Flow) Input(schema any) *Flow {
	if text, ok := schema.(string); ok {
		schema = json.RawMessage(text)
	}
	return f.set("input", schema)
}

// Output is what a run gives.
func (f *Flow) Output(value any) *Flow { return f.set("output", value) }

// Timeout is of a run.
func (f *Flow) Timeout(d time.Duration) *Flow { return f.set("timeout", d.String()) }

// Context bounds the bytes of outputs that a run keeps for its later steps.
func (f *Flow) Context(bytes int) *Flow { return f.set("context", bytes) }

func (f *Flow) set(key string, value any) *Flow {
	f.fields.set(key, value)
	return f
}

// Source is the file. An error is flow.Problems where the flow is not sound.
func (f *Flow) Source() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "flow: %s\n", quoted(f.name))
	for _, one := range f.fields {
		if err := line(&b, one.key, one.value); err != nil {
			return nil, err
		}
	}
	b.WriteString("\nsteps:\n")
	for _, s := range f.steps {
		b.WriteString("  ")
		if err := line(&b, s.id, s.fields); err != nil {
			return nil, err
		}
	}
	out, err := flow.Format(b.Bytes())
	if err != nil {
		return nil, err
	}
	if _, problems := flow.Load(out, flow.Known{}); len(problems.Errors()) > 0 {
		return nil, problems
	}
	return out, nil
}

// line writes a field; JSON is how YAML writes values in one line.
func line(b *bytes.Buffer, key string, value any) error {
	text, err := encode(value)
	if err != nil {
		return forebay.Errorf(forebay.CodeInvalid, "build: source", "%s cannot be written as JSON: %w", key, err)
	}
	fmt.Fprintf(b, "%s: %s\n", quoted(key), text)
	return nil
}

func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}

// quoted is a name as it can stand in a file, whatever it is: what is wrong with it,
// flow says.
func quoted(name string) string {
	plain := name != "" && !slices.Contains([]string{"true", "false", "null"}, name)
	for i, c := range name {
		plain = plain && ('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || i > 0 && ('0' <= c && c <= '9' || c == '-' || c == '.'))
	}
	if plain {
		return name
	}
	text, _ := encode(name) // a text always can
	return string(text)
}

// fields are a map in the order in which they were set.
type fields []field

type field struct {
	key   string
	value any
}

func (fs *fields) set(key string, value any) {
	if i := slices.IndexFunc(*fs, func(f field) bool { return f.key == key }); i >= 0 {
		(*fs)[i].value = value
		return
	}
	*fs = append(*fs, field{key, value})
}

func (fs fields) get(key string) any {
	for _, f := range fs {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// MarshalJSON keeps the order.
func (fs fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range fs {
		text, err := encode(f.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := encode(f.key) // a text always can
		b.Write(append(append(key, ':'), text...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
