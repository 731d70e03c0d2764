package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent is the name of the header with the caller's trace and span IDs, as defined by the W3C Trace Context specification.
const traceparent = "traceparent"

// Traceparent returns the context's trace and span IDs in the format of the traceparent header, or an empty string if the context
// has no trace. The result can be stored; Parse converts it back to a span context.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}

	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)

	return carrier[traceparent]
}

// Parse returns the span context that a traceparent value describes, such as a result of Traceparent. If the value is empty or
// malformed, the IsValid method of the result returns false.
func Parse(line string) trace.SpanContext {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: line})

	return trace.SpanContextFromContext(ctx)
}

// ID returns the ID of the context's trace as 32 hexadecimal digits. It returns an empty string if no collector receives the
// trace: if tracing is off, if the context has no trace, or if the trace is not sampled.
func ID(ctx context.Context) string {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() || !span.IsSampled() || ctx.Value(tracingKey{}) == nil {
		return ""
	}

	return span.TraceID().String()
}

type tracingKey struct{}

// Receive is a middleware that stores t and the client's trace, if any, in the request's context. Begin creates spans only in a
// context from Receive.
func (t *Tracing) Receive(next http.Handler) http.Handler {
	if t == nil {
		return next
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, tracingKey{}, t)))
	})
}

// Begin starts the span of an authorized request. At the end of the request, the caller must call the returned function with the
// error message of the response, or with an empty string. If changes is false, the request gets a span only if the client sent a
// trace; otherwise, most traces would consist of a single poll.
func Begin(ctx context.Context, name string, changes bool) (context.Context, func(problem string)) {
	t, on := ctx.Value(tracingKey{}).(*Tracing)
	if !on || !changes && !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(string) {}
	}

	//nolint:spancheck // the returned function ends the span
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))

	return ctx, func(problem string) { //nolint:spancheck // as above
		if problem != "" {
			span.SetStatus(codes.Error, problem)
		}

		span.End()
	}
}

// Transport returns a transport that creates a child span for each call within a span, and propagates the trace to the called
// system. The child span ends when the header of the response arrives. Calls outside of a span, such as polls, probes, feeds and
// watches, are sent unchanged.
func Transport(system string, next http.RoundTripper) http.RoundTripper {
	return transport{system: system, next: next}
}

type transport struct {
	system string
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()

	parent := trace.SpanFromContext(ctx)
	if !parent.SpanContext().IsValid() {
		return t.next.RoundTrip(request)
	}

	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, request.Method+" "+t.system,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("http.request.method", request.Method),
			attribute.String("server.address", request.URL.Hostname()),
			attribute.String("url.path", request.URL.Path),
		))
	defer span.End()

	request = request.Clone(ctx)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(request.Header))

	response, err := t.next.RoundTrip(request)
	if err != nil {
		span.SetStatus(codes.Error, "no response") // the text of the error may contain a URL with a password

		return nil, err
	}

	span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))

	if response.StatusCode >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, response.Status)
	}

	return response, nil
}
