// Package task is for handlers of jobs: a Mux that finds the handler of a job by
// its kind, and Func, which makes a handler of a function with types of its own.
// The packages below it are the handlers that come with the program.
//
// It promises: data that does not fit a handler's type is a dead letter at once,
// with the cause "bad_data" and the field named; a kind that nobody handles fails
// with the cause "no_handler" and is tried again like any failure, since the next
// deploy may bring its handler.
//
// It refuses to guess: a kind has one handler, and a second one is a mistake of the
// program (Handle panics, as http.ServeMux does). It keeps no state of jobs.
package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/internal/schema"
	"github.com/forebayhq/forebay/worker"
)

// Any is the kind of the handler for all kinds that have none of their own.
const Any = "*"

// Codes of the causes that this package gives.
const (
	CodeNoHandler = "no_handler"
	CodeBadData   = "bad_data"
	CodeBadResult = "bad_result"
)

// Mux hands each job to the handler of its kind. The zero value is ready. Its
// methods may be called from several goroutines.
type Mux struct {
	mu       sync.RWMutex
	handlers map[string]worker.JobHandler // guarded by mu, as the next
	about    map[string]About
}

// About is what a handler says of itself: forms are made of it, and flows are checked
// against it before they are stored.
type About struct {
	Title       string
	Description string
	Data        jsontext.Value // JSON Schema (2020-12) of the data of its jobs; empty: anything
	Result      jsontext.Value // JSON Schema of what it gives; empty: anything
}

var _ worker.JobHandler = (*Mux)(nil)

// Handle makes h the handler of a kind; Any stands for those without one. It
// panics where the kind is empty or has a handler already, or h is nil.
func (m *Mux) Handle(kind string, h worker.JobHandler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case kind == "":
		panic("task: a handler needs a kind; " + Any + " stands for all others")
	case h == nil:
		panic(fmt.Sprintf("task: the handler of %q is nil", kind))
	case m.handlers[kind] != nil:
		panic(fmt.Sprintf("task: %q has a handler already", kind))
	}
	if m.handlers == nil {
		m.handlers = map[string]worker.JobHandler{}
	}
	m.handlers[kind] = h
}

// Kinds are those with a handler, in order.
func (m *Mux) Kinds() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.handlers))
}

// Describe says what the handler of a kind takes and gives. It panics where the kind has
// no handler, or a schema does not compile: both are mistakes of the program. A schema
// with "x-enforce": true has jobs refused whose data does not fit, when they are added.
func (m *Mux) Describe(kind string, a About) {
	for _, one := range []jsontext.Value{a.Data, a.Result} {
		if _, err := schema.Compile([]byte(one)); err != nil {
			panic(fmt.Sprintf("task: a schema of %q: %v", kind, err))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handlers[kind] == nil {
		panic(fmt.Sprintf("task: %q has no handler to describe", kind))
	}
	if m.about == nil {
		m.about = map[string]About{}
	}
	m.about[kind] = a
}

// About is what the handler of a kind says of itself; zero: nothing.
func (m *Mux) About(kind string) About {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.about[kind]
}

// HandleJob calls the handler of the job's kind.
func (m *Mux) HandleJob(ctx context.Context, j *worker.Job) ([]byte, error) {
	m.mu.RLock()
	h, ok := m.handlers[j.Kind]
	if !ok {
		h, ok = m.handlers[Any]
	}
	m.mu.RUnlock()
	if !ok {
		cause := forebay.Cause{Code: CodeNoHandler, Detail: map[string]string{"kind": j.Kind}}
		return nil, forebay.Because(cause, fmt.Errorf("no handler for jobs named %q; there are: %s",
			j.Kind, strings.Join(m.Kinds(), ", ")))
	}
	return h.HandleJob(ctx, j)
}

// Func makes a handler of a function: the job's data is decoded into T before, and
// R is encoded as the job's result after. A job without data gives the zero T, and
// members that T does not know are left out.
func Func[T, R any](f func(ctx context.Context, j *worker.Job, data T) (R, error)) worker.JobHandler {
	return worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
		var data T
		if len(j.Payload) > 0 {
			if err := json.Unmarshal(j.Payload, &data); err != nil {
				return nil, badJSON(err)
			}
		}
		result, err := f(ctx, j, data)
		if err != nil {
			return nil, err
		}
		return encode(result)
	})
}

// BadData is for a handler whose data is wrong in a way that a type cannot tell:
// the job is a dead letter at once. The field is a path such as "to.0".
func BadData(field, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
	e.Field = field
	cause := forebay.Cause{Code: CodeBadData}
	if field != "" {
		cause.Detail = map[string]string{"field": field}
	}
	return forebay.Permanent(forebay.Because(cause, e))
}

// badJSON says where data does not fit.
func badJSON(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		field := path(semantic.JSONPointer)
		text := fmt.Sprintf("the data does not fit: JSON %s for Go %s", name(semantic.JSONKind), semantic.GoType)
		if semantic.Err != nil {
			return BadData(field, "%s: %w", text, semantic.Err)
		}
		return BadData(field, "%s", text)
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return BadData(path(syntactic.JSONPointer), "the data is not JSON: %w at byte %d", syntactic.Err, syntactic.ByteOffset)
	}
	return BadData("", "the data is not JSON: %w", err)
}

// path writes a JSON pointer as people write it: a.b.0.
func path(p jsontext.Pointer) string { return strings.Join(slices.Collect(p.Tokens()), ".") }

func name(k jsontext.Kind) string {
	switch k {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case '0':
		return "number"
	case 't', 'f':
		return "boolean"
	}
	return k.String()
}

// encode makes a result. One that cannot be kept ends the job: the work is done,
// and doing it again would give the same.
func encode(result any) ([]byte, error) {
	out, err := json.Marshal(result, json.Deterministic(true))
	if err == nil && len(out) > forebay.MaxResultBytes {
		err = fmt.Errorf("it has %d bytes of JSON; up to %d are kept", len(out), forebay.MaxResultBytes)
	}
	if err != nil {
		cause := forebay.Cause{Code: CodeBadResult}
		return nil, forebay.Permanent(forebay.Because(cause, fmt.Errorf("the handler's result cannot be kept: %w", err)))
	}
	return out, nil
}
