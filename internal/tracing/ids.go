package tracing

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/trace"
)

// ids implements sdktrace.IDGenerator. It generates random IDs, unless the context is from WithIDs.
type ids struct{}

type idsKey struct{}

// WithIDs returns a context in which a new span gets the IDs of the given span. The span of an operation is created only after
// the operation has ended, with the IDs that the spans of the steps already name as their parent.
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
