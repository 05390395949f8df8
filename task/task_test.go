package task_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

var j0 = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

type order struct {
	Customer string `json:"customer"`
	Lines    []struct {
		Article string `json:"article"`
		Count   int    `json:"count"`
	} `json:"lines"`
}

func job(kind, data string) *worker.Job {
	return worker.NewJob(forebay.Delivery{Message: forebay.Message{ID: "j1", Kind: kind, Payload: []byte(data)}, Attempt: 1},
		func(*forebay.Progress, *forebay.LogLine) {})
}

func count(_ context.Context, _ *worker.Job, o order) (map[string]int, error) {
	n := 0
	for _, l := range o.Lines {
		n += l.Count
	}
	return map[string]int{"count": n}, nil
}

func TestMuxFindsTheHandlerOfAKind(t *testing.T) {
	t.Parallel()
	var m task.Mux
	m.Handle("order.count", task.Func(count))
	m.Handle("order.fail", task.Func(func(context.Context, *worker.Job, order) (any, error) { return 1, errors.New("no stock") }))

	got, err := m.HandleJob(t.Context(), job("order.count", `{"customer":"ann","lines":[{"count":2},{"count":3}],"new":1}`))
	if err != nil || string(got) != `{"count":5}` {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := m.HandleJob(t.Context(), job("order.count", "")); err != nil || string(got) != `{"count":0}` {
		t.Errorf("without data: got %s, %v", got, err)
	}
	if got, err := m.HandleJob(t.Context(), job("order.fail", `{}`)); got != nil || err == nil || err.Error() != "no stock" {
		t.Errorf("a failure: got %s, %v", got, err)
	}
	if k := strings.Join(m.Kinds(), " "); k != "order.count order.fail" {
		t.Errorf("kinds: %s", k)
	}
}

func TestAHandlerSaysWhatItTakes(t *testing.T) {
	t.Parallel()
	var m task.Mux
	m.Handle("order.count", task.Func(count))
	m.Describe("order.count", task.About{Title: "Count", Data: []byte(`{"type":"object"}`)})
	if a := m.About("order.count"); a.Title != "Count" || string(a.Data) != `{"type":"object"}` {
		t.Errorf("it says %+v", a)
	}
	for kind, data := range map[string]string{"other": `{}`, "order.count": `{"type":"strung"}`} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s with %s is taken", kind, data)
				}
			}()
			m.Describe(kind, task.About{Data: []byte(data)})
		}()
	}
}

func TestAKindWithoutHandlerIsTriedAgain(t *testing.T) {
	t.Parallel()
	var m task.Mux
	m.Handle("b", task.Func(count))
	m.Handle("a", task.Func(count))
	_, err := m.HandleJob(t.Context(), job("c", `{}`))
	if forebay.IsPermanent(err) {
		t.Error("it is permanent")
	}
	c := forebay.CauseOf(err, j0)
	if c.Code != "no_handler" || c.Detail["kind"] != "c" || !strings.Contains(c.Message, `"c"; there are: a, b`) {
		t.Errorf("cause %+v", c)
	}

	m.Handle(task.Any, worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) { return []byte(`"` + j.Kind + `"`), nil }))
	if got, err := m.HandleJob(t.Context(), job("c", `{}`)); err != nil || string(got) != `"c"` {
		t.Errorf("with one for all: got %s, %v", got, err)
	}
}

func TestBadDataNamesTheField(t *testing.T) {
	t.Parallel()
	h := task.Func(count)
	for _, c := range []struct{ data, field, text string }{
		{`{"lines":[{"count":1},{"count":"two"}]}`, "lines.1.count", "string"},
		{`{"customer":7}`, "customer", "number"},
		{`{"customer":{}}`, "customer", "object"},
		{`{"lines":true}`, "lines", "boolean"},
		{`{"lines":[{"count":1e99}]}`, "lines.0.count", "number for Go int"},
		{`[]`, "", "array"},
		{`{"customer":"ann"`, "", "not JSON"},
		{`{"customer":"ann","customer":"bob"}`, "customer", "duplicate"},
		{"{\"customer\":\"\xff\"}", "customer", "UTF-8"},
		{`{} {}`, "", "not JSON"},
		{`nonsense`, "", "not JSON"},
	} {
		_, err := h.HandleJob(t.Context(), job("x", c.data))
		if !forebay.IsPermanent(err) || forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("%s: %v is not a permanent invalid", c.data, err)
			continue
		}
		cause := forebay.CauseOf(err, j0)
		if cause.Code != "bad_data" || cause.Detail["field"] != c.field || !strings.Contains(cause.Message, c.text) {
			t.Errorf("%s: cause %+v, want field %q and %q", c.data, cause, c.field, c.text)
		}
	}
}

func TestAResultThatCannotBeKeptEndsTheJob(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]any{
		"too large": strings.Repeat("x", forebay.MaxResultBytes),
		"no JSON":   math.NaN(),
		"channel":   make(chan int),
	} {
		h := task.Func(func(context.Context, *worker.Job, struct{}) (any, error) { return result, nil })
		got, err := h.HandleJob(t.Context(), job("x", `{}`))
		if got != nil || !forebay.IsPermanent(err) || forebay.CauseOf(err, j0).Code != "bad_result" {
			t.Errorf("%s: got %d bytes, %v", name, len(got), err)
		}
	}
}

func TestHandleRefusesMistakesOfTheProgram(t *testing.T) {
	t.Parallel()
	h := task.Func(count)
	for name, f := range map[string]func(*task.Mux){
		"no kind": func(m *task.Mux) { m.Handle("", h) },
		"nil":     func(m *task.Mux) { m.Handle("a", nil) },
		"twice":   func(m *task.Mux) { m.Handle("a", h); m.Handle("a", h) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f(new(task.Mux))
		}()
	}
}

func FuzzDataOfAFunc(f *testing.F) {
	for _, s := range []string{`{"customer":"a","lines":[{"count":2}]}`, `{"lines":[{"count":"x"}]}`, `[`, "\xff", `null`} {
		f.Add([]byte(s))
	}
	h := task.Func(count)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := h.HandleJob(t.Context(), job("x", string(data)))
		if err != nil && forebay.CauseOf(err, j0).Code != "bad_data" {
			t.Errorf("%q: %v", data, err)
		}
	})
}
