package httpserver

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/logging"
)

// RequestIdentity is the header by which a request is known to both sides. Every answer repeats it.
const RequestIdentity = "X-Broker-API-Request-Identity"

// Middleware wraps a handler.
type Middleware = func(http.Handler) http.Handler

// Wrap puts the middlewares around a handler; the first one sees a request first.
func Wrap(handler http.Handler, middlewares ...Middleware) http.Handler {
	for _, wrap := range slices.Backward(middlewares) {
		handler = wrap(handler)
	}

	return handler
}

// Echo repeats the identity of the request in the answer.
func Echo(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if identity := r.Header.Get(RequestIdentity); identity != "" {
			w.Header().Set(RequestIdentity, identity)
		}

		next.ServeHTTP(w, r)
	})
}

// Limit refuses a body that is longer than the limit in bytes.
func Limit(bytes int64) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > bytes {
				Endpoint(func(*http.Request) (Answer, error) {
					return Answer{}, &http.MaxBytesError{Limit: bytes}
				}).ServeHTTP(w, r)

				return
			}

			r.Body = http.MaxBytesReader(w, r.Body, bytes)
			next.ServeHTTP(w, r)
		})
	}
}

// Deadline bounds the work of a request, and frees it from the client: one that hangs up does not tear the work in two.
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

// Log writes a line about each request, without its body and its query, and turns a panic into an answer.
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
						RefusalOf(errPanic).answer().Write(recorder)
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

// ResponseRecorder is a ResponseWriter that remembers the status of the response.
type ResponseRecorder struct {
	http.ResponseWriter

	// Status is 0 until the response has started.
	Status int
	// KeepError is how many bytes of an error response's body are kept in ErrorBody.
	KeepError int
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

// Unwrap supports http.ResponseController.
func (r *ResponseRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
