package trace_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	otel "go.opentelemetry.io/otel/trace"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/monitor/trace"
	"github.com/forebayhq/forebay/worker"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	sent    = "00-" + traceID + "-00f067aa0ba902b7-01"
)

// kept gives the spans by name, once the tracer is closed.
type kept struct {
	*tracetest.InMemoryExporter
	all map[string]tracetest.SpanStub
}

func (k *kept) Shutdown(ctx context.Context) error { // the exporter forgets everything then
	k.all = map[string]tracetest.SpanStub{}
	for _, s := range k.GetSpans() {
		k.all[s.Name] = s
	}
	return k.InMemoryExporter.Shutdown(ctx)
}

func start(t *testing.T) (*trace.Tracer, func() map[string]tracetest.SpanStub) {
	t.Helper()
	k := &kept{InMemoryExporter: tracetest.NewInMemoryExporter()}
	tr := trace.New(k, "test")
	return tr, func() map[string]tracetest.SpanStub {
		t.Helper()
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
		return k.all
	}
}

func TestARequestItsWaitAndItsHandlerAreOneTrace(t *testing.T) {
	t.Parallel()
	tr, end := start(t)
	given := ""
	h := tr.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given = r.Header.Get("Traceparent")
		w.WriteHeader(503)
	}))
	r := httptest.NewRequest("POST", "/api/jobs", nil)
	r.Header.Set("Traceparent", sent)
	h.ServeHTTP(httptest.NewRecorder(), r)
	if r.Header.Get("Traceparent") != sent || given == sent || !strings.HasPrefix(given, "00-"+traceID) {
		t.Errorf("the handler was given %q; the request has %q", given, r.Header.Get("Traceparent"))
	}
	at := time.Now().Add(-time.Minute)
	d := forebay.Delivery{Message: forebay.Message{ID: "j", Queue: "mail", Kind: "send", Job: &forebay.JobOptions{Trace: given}}, SentAt: at, Attempt: 2}
	_, err := tr.Jobs(worker.JobFunc(func(context.Context, *worker.Job) ([]byte, error) {
		return nil, forebay.Because(forebay.Cause{Code: "smtp"}, errors.New("no"))
	})).HandleJob(t.Context(), worker.NewJob(d, nil))
	if err == nil {
		t.Error("the handler's error is lost")
	}
	spans := end()
	request, queue, handle := spans["POST /api/jobs"], spans["queue mail"], spans["handle send"]
	for _, s := range []tracetest.SpanStub{request, queue, handle} {
		if s.SpanContext.TraceID().String() != traceID {
			t.Errorf("%q is of another trace: %v", s.Name, s.SpanContext)
		}
	}
	if request.Parent.SpanID().String() != "00f067aa0ba902b7" || queue.Parent.SpanID() != request.SpanContext.SpanID() || handle.Parent.SpanID() != request.SpanContext.SpanID() {
		t.Error("the spans do not hang together")
	}
	if !queue.StartTime.Equal(at) || queue.EndTime.Sub(at) < time.Minute {
		t.Errorf("in the queue from %v to %v", queue.StartTime, queue.EndTime)
	}
	if handle.Status.Description != "no" || request.Status.Code.String() != "Error" {
		t.Errorf("%+v %+v", handle.Status, request.Status)
	}
}

func TestABatchLinksToItsMessages(t *testing.T) {
	t.Parallel()
	tr, end := start(t)
	ds := []forebay.Delivery{
		{Message: forebay.Message{ID: "a", Queue: "events", Headers: map[string]string{trace.Header: sent}}, SentAt: time.Now()},
		{Message: forebay.Message{ID: "b", Queue: "events"}},
		{Message: forebay.Message{ID: "c", Queue: "events", Headers: map[string]string{trace.Header: "nonsense"}}},
	}
	errs := tr.Batch("events", worker.BatchFunc(func(context.Context, []forebay.Delivery) []error {
		return []error{nil, errors.New("no"), nil}
	})).HandleBatch(otel.ContextWithRemoteSpanContext(t.Context(), otel.NewSpanContext(otel.SpanContextConfig{
		TraceID: otel.TraceID{1}, SpanID: otel.SpanID{1}, TraceFlags: otel.FlagsSampled,
	})), ds)
	if len(errs) != 3 || errs[1] == nil {
		t.Errorf("%v", errs)
	}
	spans := end()
	batch, queue := spans["write events"], spans["queue events"]
	if len(batch.Links) != 1 || batch.Links[0].SpanContext.TraceID().String() != traceID || batch.SpanContext.TraceID().String() == traceID || batch.Parent.IsValid() {
		t.Errorf("%+v", batch)
	}
	if queue.SpanContext.TraceID().String() != traceID || len(queue.Links) != 1 || queue.Links[0].SpanContext.SpanID() != batch.SpanContext.SpanID() || len(spans) != 2 {
		t.Errorf("%+v", queue)
	}
	if batch.Status.Code.String() != "Error" {
		t.Errorf("%+v", batch.Status)
	}
}

func TestWithoutAPlaceThereIsNoTracer(t *testing.T) {
	for _, env := range []map[string]string{
		{},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		tr, err := trace.Open(t.Context(), "test", func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		if err != nil || tr != nil {
			t.Errorf("%v: %v, %v", env, tr, err)
		}
		h := worker.JobFunc(func(context.Context, *worker.Job) ([]byte, error) { return nil, nil })
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		if n := testing.AllocsPerRun(10, func() { _ = tr.Jobs(h) }); n != 0 {
			t.Errorf("wrapping nothing takes %v allocations", n)
		}
	}
}
