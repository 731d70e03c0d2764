package httpserver

import (
	"net/http"
	"strings"

	"github.com/gorilla/mux"

	"github.com/environment-broker/environment-broker/internal/tracing"
)

// Traced is a middleware for routers of gorilla/mux: the span of a request is named by its route, which names no instance.
func Traced(next http.Handler) http.Handler {
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

// problem is what a status tells of a request that failed, or empty.
func problem(status int) string {
	if status < http.StatusBadRequest {
		return ""
	}

	return strings.ToLower(http.StatusText(status))
}
