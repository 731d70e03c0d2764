package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// header is where W3C Trace Context has the trace of a request.
const header = "traceparent"

// Carry returns the trace of the context as a line, for what goes on later: empty when there is none.
func Carry(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}

	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)

	return carrier[header]
}

// carried reads what Carry has written. What cannot be read is no trace.
func carried(line string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{header: line})

	return trace.SpanContextFromContext(ctx)
}
