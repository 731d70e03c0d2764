package tracing

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/trace"
)

// ids generates random ids, except for spans whose ids were fixed by WithIDs.
type ids struct{}

type idsKey struct{}

// WithIDs returns a context in which the next span gets the ids of the given one. The steps of an operation name its span as their parent
// long before it can be sent, which is when the operation ends.
func WithIDs(ctx context.Context, span trace.SpanContext) context.Context {
	return context.WithValue(ctx, idsKey{}, span)
}

// NewIDs implements sdktrace.IDGenerator.
func (i ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if span, ok := ctx.Value(idsKey{}).(trace.SpanContext); ok {
		return span.TraceID(), span.SpanID()
	}

	var id trace.TraceID

	_, _ = rand.Read(id[:]) // never fails

	return id, i.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if span, ok := ctx.Value(idsKey{}).(trace.SpanContext); ok {
		return span.SpanID()
	}

	var id trace.SpanID

	_, _ = rand.Read(id[:]) // never fails

	return id
}
