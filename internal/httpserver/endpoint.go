package httpserver

import (
	"net/http"
	"sort"
	"strings"
)

// Endpoint answers a request, or returns an error that RefusalOf turns into an answer.
type Endpoint func(r *http.Request) (Answer, error)

// ServeHTTP answers the request. The cause of a refusal goes to the request's log line.
func (e Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := e(r)
	if err != nil {
		refusal := RefusalOf(err)
		note(r.Context(), refusal)
		answer = refusal.answer()
	}

	answer.Write(w)
}

// Methods are the endpoints of one path, by method. HEAD is answered like GET, what is missing with 405 and Allow.
type Methods map[string]http.Handler

// ServeHTTP calls the endpoint of the request's method.
func (m Methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}

	if handler, known := m[method]; known {
		handler.ServeHTTP(w, r)

		return
	}

	allowed := make([]string, 0, len(m))
	for method := range m {
		allowed = append(allowed, method)
	}

	sort.Strings(allowed)
	w.Header().Set("Allow", strings.Join(allowed, ", "))

	refusal := Refusal{
		Status: http.StatusMethodNotAllowed, Code: "MethodNotAllowed",
		Description: "This path does not know the method " + r.Method + ".",
	}
	refusal.answer().Write(w)
}

// NotFound answers a path that does not exist.
func NotFound(_ *http.Request) (Answer, error) {
	return Answer{}, &Refusal{
		Status: http.StatusNotFound, Code: "NotFound", Description: "There is nothing at this path.",
	}
}
