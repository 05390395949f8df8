package trace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker"
)

// Header is where messages that are no jobs keep their W3C context.
const Header = "traceparent"

// maxLinks is how many messages of a batch are linked.
const maxLinks = 100

// parent is the context that a delivery came with; it is not valid where there is none.
func (t *Tracer) parent(d *forebay.Delivery) trace.SpanContext {
	text := d.Headers[Header]
	if d.Job != nil && d.Job.Trace != "" {
		text = d.Job.Trace
	}
	if text == "" {
		return trace.SpanContext{}
	}
	ctx := t.context.Extract(context.Background(), propagation.MapCarrier{Header: text})
	return trace.SpanContextFromContext(ctx)
}

// waited makes the span of a delivery's time in its queue.
func (t *Tracer) waited(ctx context.Context, d *forebay.Delivery, until time.Time, links ...trace.Link) {
	from := d.SentAt
	if d.NotBefore.After(from) {
		from = d.NotBefore
	}
	if from.After(until) { // clocks of two machines
		from = until
	}
	_, span := t.tracer.Start(ctx, "queue "+d.Queue, trace.WithTimestamp(from), trace.WithLinks(links...), trace.WithAttributes(attributes(d)...))
	span.End(trace.WithTimestamp(until))
}

func attributes(d *forebay.Delivery) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "forebay"), attribute.String("messaging.destination.name", d.Queue),
		attribute.String("messaging.message.id", d.ID), attribute.String("forebay.kind", d.Kind),
		attribute.Int("forebay.attempt", d.Attempt),
	}
}

func failed(span trace.Span, err error) {
	if err != nil {
		span.SetAttributes(attribute.String("error.type", forebay.CauseOf(err, time.Time{}).Code))
		span.SetStatus(codes.Error, err.Error())
	}
}

// Jobs makes spans of what a handler handles: they belong to the trace that the job
// came with.
func (t *Tracer) Jobs(h worker.JobHandler) worker.JobHandler {
	if t == nil {
		return h
	}
	return worker.JobFunc(func(ctx context.Context, j *worker.Job) (result []byte, err error) {
		if from := t.parent(&j.Delivery); from.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, from)
			t.waited(ctx, &j.Delivery, time.Now())
		}
		ctx, span := t.tracer.Start(ctx, "handle "+j.Kind, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributes(&j.Delivery)...))
		defer span.End() // also where the handler panics
		result, err = h.HandleJob(ctx, j)
		failed(span, err)
		return result, err
	})
}

// Batch makes a trace of each batch, with links to the traces of its messages; each of
// these gets the message's time in the queue, with a link to the batch.
func (t *Tracer) Batch(queue string, h worker.BatchHandler) worker.BatchHandler {
	if t == nil {
		return h
	}
	return worker.BatchFunc(func(ctx context.Context, ds []forebay.Delivery) []error {
		now := time.Now()
		var links []trace.Link
		var linked []int
		for i := range ds {
			if from := t.parent(&ds[i]); from.IsValid() && len(links) < maxLinks {
				links, linked = append(links, trace.Link{SpanContext: from}), append(linked, i)
			}
		}
		ctx, span := t.tracer.Start(ctx, "write "+queue, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(links...),
			trace.WithAttributes(attribute.String("messaging.system", "forebay"), attribute.String("messaging.destination.name", queue),
				attribute.Int("messaging.batch.message_count", len(ds))))
		defer span.End()
		for n, i := range linked {
			t.waited(trace.ContextWithRemoteSpanContext(ctx, links[n].SpanContext), &ds[i], now, trace.Link{SpanContext: span.SpanContext()})
		}
		errs := h.HandleBatch(ctx, ds)
		failures := 0
		for _, err := range errs {
			if err != nil {
				failures++
			}
		}
		if failures > 0 {
			span.SetAttributes(attribute.Int("forebay.failed", failures))
			span.SetStatus(codes.Error, "some messages failed")
		}
		return errs
	})
}
