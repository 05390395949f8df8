// Package trace tells where the time of one request went: a span for the request that
// brought an event or a job, one for its wait in the queue, one for its handler, as
// OpenTelemetry wants them, sent over OTLP.
//
// It promises that a W3C context which comes with a request goes with its messages; that
// a batch, which belongs to many traces, is a trace of its own that links to them; that
// spans which cannot be sent are dropped, and hold up nothing; and that without a place
// to send them to there is no Tracer: a nil one wraps nothing and costs nothing.
//
// It refuses to keep spans, and to put payloads into them.
package trace

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/forebayhq/forebay"
)

const closeTimeout = 5 * time.Second // for the last spans

// Tracer makes spans. A nil one makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	context  propagation.TraceContext
}

// Open makes a Tracer by the standard variables of OpenTelemetry, which lookup finds
// (os.LookupEnv): where to send spans, how many, and what is said of this process. It is
// nil where they name no place, or say that there is to be none. Close it.
func Open(ctx context.Context, version string, lookup func(string) (string, bool)) (*Tracer, error) {
	get := func(name string) string { v, _ := lookup(name); return v }
	if get("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" ||
		get("OTEL_SDK_DISABLED") == "true" || get("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "trace: OTEL_EXPORTER_OTLP_ENDPOINT", "%w", err)
	}
	return New(exporter, version), nil
}

// New makes a Tracer that sends to an exporter.
func New(exporter sdk.SpanExporter, version string) *Tracer {
	self := resource.NewSchemaless(attribute.String("service.name", "forebay"), attribute.String("service.version", version))
	if merged, err := resource.Merge(self, resource.Environment()); err == nil { // OTEL_SERVICE_NAME and its like weigh more
		self = merged
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(self))
	return &Tracer{provider: p, tracer: p.Tracer("github.com/forebayhq/forebay", trace.WithInstrumentationVersion(version))}
}

// Close sends what is left, for at most some seconds.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // spans that cannot be sent are dropped
	return nil
}

// HTTP makes a span of each request. Its context stands in the request's Traceparent, so
// that what the handler sends goes on from there.
func (t *Tracer) HTTP(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := t.context.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, r.Method+" "+r.URL.Path, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("url.path", r.URL.Path)))
		defer span.End()
		r = r.WithContext(ctx)
		r.Header = r.Header.Clone()
		t.context.Inject(ctx, propagation.HeaderCarrier(r.Header))
		seen := &answer{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(seen, r)
		span.SetAttributes(attribute.Int("http.response.status_code", seen.status))
		if seen.status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(seen.status))
		}
	})
}

// answer is an answer whose status is seen.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
