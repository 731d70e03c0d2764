package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

type tracingKey struct{}

// Receive is a middleware that has the trace of a client go on in the context of its request. Begin needs it.
func (t *Tracing) Receive(next http.Handler) http.Handler {
	if t == nil {
		return next
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, tracingKey{}, t)))
	})
}

// Begin begins the span of a request that was let in. The function ends it; a problem is a text that the client is told. One that changes
// nothing has a span only within the trace of its client: else polls would make most of the traces.
func Begin(ctx context.Context, name string, changes bool) (context.Context, func(problem string)) {
	t, on := ctx.Value(tracingKey{}).(*Tracing)
	if !on || !changes && !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(string) {}
	}

	//nolint:spancheck // the function that is returned ends it
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))

	return ctx, func(problem string) { //nolint:spancheck // as above
		if problem != "" {
			span.SetStatus(codes.Error, problem)
		}

		span.End()
	}
}

// Transport begins a span for each call that is made within one, and tells the system to which trace the call belongs. It lasts until
// the answer begins. Calls outside of a span go by: polls, probes, feeds and watches.
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
		span.SetStatus(codes.Error, "no answer") // the error's text may hold the address with a password

		return nil, err
	}

	span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))

	if response.StatusCode >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, response.Status)
	}

	return response, nil
}
