package httpserver

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/tracing"
)

// RequestIdentity is the header in which platforms send the ID of a request. Every response repeats the header.
const RequestIdentity = "X-Broker-API-Request-Identity"

// Middleware wraps a handler.
type Middleware = func(http.Handler) http.Handler

// Wrap returns the handler inside the middlewares. The first middleware is the outermost one.
func Wrap(handler http.Handler, middlewares ...Middleware) http.Handler {
	for _, wrap := range slices.Backward(middlewares) {
		handler = wrap(handler)
	}

	return handler
}

// EchoRequestIdentity is a middleware that copies the header RequestIdentity to the response, so that platforms can match the two in logs.
func EchoRequestIdentity(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if identity := r.Header.Get(RequestIdentity); identity != "" {
			w.Header().Set(RequestIdentity, identity)
		}

		next.ServeHTTP(w, r)
	})
}

// LimitBody returns a middleware that rejects bodies of more than the given bytes with 413. A request that declares its length is rejected at
// once; any other request fails when the handler reads beyond the limit.
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

// Deadline returns a middleware that bounds the handling of a request. The context of the request no longer ends with the connection, so a
// client that hangs up cannot interrupt a change between two writes.
func Deadline(limit time.Duration) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), limit)
			defer cancel()

			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

var errPanic = errors.New("the handler panicked")

// Log returns a middleware that logs a line for each request and responds 500 if a handler panics. The line has neither the body nor the
// query, which may contain secrets. Handlers and inner middlewares add fields with Note.
func Log(log logrus.FieldLogger, clock clock.PassiveClock) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := clock.Now()
			line := &notes{fields: logrus.Fields{
				logging.Method: r.Method, logging.Path: r.URL.EscapedPath(), logging.Address: r.RemoteAddr,
			}}

			if identity := r.Header.Get(RequestIdentity); identity != "" {
				line.fields[logging.RequestID] = identity
			}

			recorder := &ResponseRecorder{ResponseWriter: w}

			defer func() {
				if value := recover(); value != nil {
					log.WithField(logging.Stack, string(debug.Stack())).Errorf("handler panicked: %v", value)

					line.cause = errPanic

					if recorder.Status == 0 {
						RefusalOf(errPanic).response().Write(recorder)
					}
				}

				line.fields[logging.Status] = recorder.Status
				line.fields[logging.Duration] = clock.Since(began).String()
				line.write(log, recorder.Status)
			}()

			next.ServeHTTP(recorder, r.WithContext(context.WithValue(r.Context(), notesKey{}, line)))
		})
	}
}

// notes collects the fields of a request's log line until the response has been sent. It has no lock; see Note.
type notes struct {
	fields logrus.Fields
	// cause is the cause of a refusal or panic, or nil.
	cause error
}

type notesKey struct{}

// Note adds a field to the log line of the request. Only the goroutine that serves the request may call Note. Outside of Log it has no
// effect.
func Note(ctx context.Context, field string, value any) {
	if line, ok := ctx.Value(notesKey{}).(*notes); ok {
		line.fields[field] = value
	}
}

// noteCause adds the cause of a refusal to the log line of the request.
func noteCause(ctx context.Context, refusal *Refusal) {
	if line, ok := ctx.Value(notesKey{}).(*notes); ok {
		line.cause = refusal.Cause
	}
}

// write logs the line: at level error for a status of 500 or more, and at level info otherwise.
func (n *notes) write(log logrus.FieldLogger, status int) {
	entry := log.WithFields(n.fields)
	if n.cause != nil {
		entry = entry.WithError(n.cause)
	}

	if status >= http.StatusInternalServerError {
		entry.Error("request failed")
	} else {
		entry.Info("request answered")
	}
}

// Trace is a middleware for routers of gorilla/mux that creates a span for the request. The name of the span is the template of the route:
// the path contains IDs, and would make every name unique.
func Trace(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Method
		if path, err := mux.CurrentRoute(r).GetPathTemplate(); err == nil {
			name += " " + path
		}

		ctx, end := tracing.Begin(r.Context(), name, r.Method != http.MethodGet && r.Method != http.MethodHead)
		recorder := &ResponseRecorder{ResponseWriter: w}

		defer func() { end(problem(recorder.Status)) }()

		next.ServeHTTP(recorder, r.WithContext(ctx))
	})
}

// problem returns the text of an error status, such as "not found", or an empty text for a success.
func problem(status int) string {
	if status < http.StatusBadRequest {
		return ""
	}

	return strings.ToLower(http.StatusText(status))
}

// ResponseRecorder is a ResponseWriter that records the status and, on request, the start of an error body. Middlewares use it to learn the
// result of the inner handler.
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
