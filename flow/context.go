package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// Input is the input of a run. What is read of it is kept, so that whoever decides
// about one run again and again may keep the Input too. It is safe for concurrent use.
type Input struct {
	raw  json.RawMessage
	once sync.Once
	plan *language
	val  any
	err  error
}

// NewInput makes one of JSON; empty is null.
func NewInput(raw json.RawMessage) *Input {
	if len(raw) == 0 {
		raw = json.RawMessage("null")
	}
	return &Input{raw: raw}
}

// Raw is the JSON.
func (in *Input) Raw() json.RawMessage { return in.raw }

func (in *Input) value(l *language) (any, error) {
	in.once.Do(func() {
		in.plan = l
		in.val, in.err = l.types.decode(in.raw, l.input)
	})
	if in.plan != l { // of another version; not kept
		return l.types.decode(in.raw, l.input)
	}
	return in.val, in.err
}

// seen gives the expressions of a step that begins what they may see; nil where the step
// has none. What cannot be read fails it all the same.
func (t *turn) seen(v *vertex) (map[string]any, error) {
	ids := t.p.ids(v.ancestors)
	if v.plain() && !slices.ContainsFunc(ids, func(id string) bool { return len(t.r.Steps[id].Output) > 0 }) {
		_, err := t.read()
		return nil, err
	}
	return t.vars(ids)
}

// plain tells whether the step is a job that no expression has a say in.
func (v *vertex) plain() bool {
	return v.Kind == KindJob && v.ForEach == nil && v.when == nil && v.with == nil && v.group == nil && v.limit == nil
}

// read gives the input.
func (t *turn) read() (any, error) {
	input, err := t.input.value(t.p.language)
	if err != nil {
		return nil, fmt.Errorf("the input is %w", err)
	}
	return input, nil
}

// vars gives expressions what they may see; ids: the steps.
func (t *turn) vars(ids []string) (map[string]any, error) {
	input, err := t.read()
	if err != nil {
		return nil, err
	}
	steps := make(map[string]any, len(ids))
	for _, id := range ids {
		s := t.r.Steps[id]
		one := map[string]any{"state": string(s.State), "output": nil}
		switch {
		case s.Omitted > 0:
			delete(one, "output")
		case len(s.Output) > 0:
			if one["output"], err = t.p.language.types.decode(s.Output, dyn); err != nil {
				return nil, fmt.Errorf("the output of %s is %w", id, err)
			}
		}
		if s.Error != nil {
			one["error"] = map[string]any{"code": s.Error.Code, "message": s.Error.Message}
		}
		steps[id] = one
	}
	return map[string]any{
		"input": input, "steps": steps,
		"run": map[string]any{"id": t.r.ID, "flow": t.r.Flow, "version": int64(t.r.Version), "started": t.r.Started},
	}, nil
}

// explained adds to an expression's error what a user cannot see: an output that was
// left out.
func (t *turn) explained(ids []string, err error) error {
	for _, id := range ids {
		if n := t.r.Steps[id].Omitted; n > 0 {
			return fmt.Errorf("%w; the output of %s has %d bytes, for which the context (%d bytes) had no room: let the step give less, or raise context", err, id, n, t.p.Context)
		}
	}
	return err
}

// context is the payload of a step that says none: the input and what the steps
// before have given.
func (t *turn) context(ids []string) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"input":`)
	b.Write(t.input.raw)
	b.WriteString(`,"steps":{`)
	for i, id := range ids {
		s := t.r.Steps[id]
		if i > 0 {
			b.WriteByte(',')
		}
		writeJSON(&b, id)
		b.WriteString(`:{"state":`)
		writeJSON(&b, s.State)
		if s.Omitted > 0 {
			fmt.Fprintf(&b, `,"omitted":%d`, s.Omitted)
		} else if len(s.Output) > 0 {
			b.WriteString(`,"output":`)
			b.Write(s.Output)
		}
		if s.Error != nil {
			b.WriteString(`,"error":`)
			writeJSON(&b, s.Error)
		}
		b.WriteByte('}')
	}
	b.WriteString("}}")
	return b.Bytes()
}

// keep stores an output for the steps that need it, while there is room.
func (t *turn) keep(v *vertex, s *StepRun, output json.RawMessage, large int) {
	t.forget(s)
	switch {
	case !t.p.uses[v.ID]:
	case large > 0:
		s.Omitted = large
	case len(output) == 0:
	case t.r.Context+len(output) > t.p.Definition.Context:
		s.Omitted = len(output)
	default:
		s.Output = output
		t.r.Context += len(output)
	}
}

func (t *turn) forget(s *StepRun) {
	t.r.Context -= len(s.Output)
	s.Output, s.Omitted = nil, 0
}
