package httpserver

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/tracing"
)

// RequestIdentity is the header in which platforms send the ID of a request. EchoRequestIdentity copies it to the response.
const RequestIdentity = "X-Broker-API-Request-Identity"

// TraceID is the response header with the ID of the request's trace, as 32 hexadecimal digits. The ID is not in error bodies: the
// Open Service Broker API allows additional headers, but an additional field would confuse strict clients.
const TraceID = "X-Trace-Id"

// Middleware wraps a handler.
type Middleware = func(http.Handler) http.Handler

// Wrap returns the handler wrapped in the middlewares. The first middleware is the outermost.
func Wrap(handler http.Handler, middlewares ...Middleware) http.Handler {
	for _, wrap := range slices.Backward(middlewares) {
		handler = wrap(handler)
	}

	return handler
}

// EchoRequestIdentity is a middleware that copies the RequestIdentity header to the response, so platforms can match requests and
// responses in logs. It ignores values of more than bounds.ID bytes, which are not the GUIDs that platforms send.
func EchoRequestIdentity(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if identity := r.Header.Get(RequestIdentity); identity != "" && len(identity) <= bounds.ID {
			w.Header().Set(RequestIdentity, identity)
		}

		next.ServeHTTP(w, r)
	})
}

// LimitBody returns a middleware that rejects request bodies above the limit with status 413. If the Content-Length exceeds the
// limit, the request is rejected before the handler runs; otherwise, it fails when the handler reads beyond the limit.
func LimitBody(bytes int64) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > bytes {
				Endpoint(func(*http.Request) (Response, error) {
					return Response{}, &http.MaxBytesError{Limit: bytes}
				}).ServeHTTP(w, r)

				return
			}

			r.Body = http.MaxBytesReader(w, r.Body, bytes)
			next.ServeHTTP(w, r)
		})
	}
}

// Deadline returns a middleware that limits the duration of a request. It also detaches the context of the request from the
// connection, so that a client that disconnects cannot stop a handler between two writes. Connection returns the context of the
// connection.
func Deadline(limit time.Duration) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			connection := context.WithValue(context.WithoutCancel(r.Context()), connectionKey{}, r.Context())

			ctx, cancel := context.WithTimeout(connection, limit)
			defer cancel()

			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

type connectionKey struct{}

// Connection returns a context that ends when the client disconnects or the server stops. Responses that last longer than the limit of
// Deadline use it instead of the context of the request.
func Connection(ctx context.Context) context.Context {
	if connection, limited := ctx.Value(connectionKey{}).(context.Context); limited {
		return connection
	}

	return ctx
}

// Trace is a middleware for gorilla/mux routers. It creates a span for the request and sets the route label of the metrics. The
// span is named after the route template, because the path contains IDs and would make every name unique. If the trace is
// sampled, the response has the trace ID in the TraceID header.
func Trace(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Method
		if path, err := mux.CurrentRoute(r).GetPathTemplate(); err == nil {
			name += " " + path

			NoteRoute(r.Context(), path)
		}

		ctx, end := tracing.Begin(r.Context(), name, r.Method != http.MethodGet && r.Method != http.MethodHead)

		if id := tracing.ID(ctx); id != "" {
			w.Header().Set(TraceID, id)
			Note(ctx, logging.TraceID, id)
		}

		recorder := &ResponseRecorder{ResponseWriter: w}

		defer func() { end(problem(recorder.Status)) }()

		next.ServeHTTP(recorder, r.WithContext(ctx))
	})
}

// problem returns the text of an error status, such as "not found", or an empty string for a success.
func problem(status int) string {
	if status < http.StatusBadRequest {
		return ""
	}

	return strings.ToLower(http.StatusText(status))
}

// ResponseRecorder is a ResponseWriter that records the status and, if KeepError is set, the start of an error body. Middlewares
// use it to read the result of the inner handler.
type ResponseRecorder struct {
	http.ResponseWriter

	// Status is 0 until the response has started.
	Status int
	// KeepError is the maximum length of ErrorBody in bytes.
	KeepError int
	// ErrorBody is the start of the body if the status is 400 or more.
	ErrorBody []byte
}

// WriteHeader implements http.ResponseWriter.
func (r *ResponseRecorder) WriteHeader(status int) {
	if r.Status == 0 {
		r.Status = status
	}

	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *ResponseRecorder) Write(body []byte) (int, error) {
	if r.Status == 0 {
		r.Status = http.StatusOK
	}

	if space := r.KeepError - len(r.ErrorBody); r.Status >= http.StatusBadRequest && space > 0 {
		r.ErrorBody = append(r.ErrorBody, body[:min(space, len(body))]...)
	}

	return r.ResponseWriter.Write(body)
}

// Unwrap returns the inner ResponseWriter, for http.ResponseController.
func (r *ResponseRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
