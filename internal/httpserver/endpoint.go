package httpserver

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Endpoint handles a request and returns either a response or an error. RefusalOf converts the error to a response, so an
// endpoint can return errors of other packages unchanged.
type Endpoint func(r *http.Request) (Response, error)

// ServeHTTP implements http.Handler. The cause of a refusal is added to the log line of the request and not sent to the client.
func (e Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := e(r)
	if err != nil {
		refusal := RefusalOf(err)
		NoteCause(r.Context(), refusal)
		response = refusal.response()
	}

	if response.Stream != nil {
		response.Stream(w)

		return
	}

	response.Write(w)
}

// Methods maps the HTTP methods of one path to their handlers. HEAD requests use the GET handler. For other methods, the
// response is 405 with the Allow header.
type Methods map[string]http.Handler

// ServeHTTP implements http.Handler. If the method is not in the map, the response has the usual JSON error body, unlike with
// http.ServeMux.
func (m Methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}

	if handler, known := m[method]; known {
		handler.ServeHTTP(w, r)

		return
	}

	w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(m)), ", "))

	refusal := Refusal{
		Status: http.StatusMethodNotAllowed, Code: "MethodNotAllowed",
		Description: "This path does not support the " + r.Method + " method.",
	}
	refusal.response().Write(w)
}

// NotFound is the Endpoint for unknown paths. It sends the JSON error body, unlike http.NotFound, which sends plain text.
func NotFound(_ *http.Request) (Response, error) {
	return Response{}, &Refusal{
		Status: http.StatusNotFound, Code: "NotFound", Description: "This path does not exist.",
	}
}

// Response is the response of an Endpoint.
type Response struct {
	// Status is the HTTP status. It is required.
	Status int
	// Body is encoded as JSON. A []byte is sent unchanged. Nil means no body.
	Body any
	// Header contains additional headers. The Content-Type of a body is application/json unless Header sets a different type.
	Header http.Header
	// Stream writes the whole response, with its status and header. If it is set, the other fields are not used. It should end when
	// the context that Connection returns ends.
	Stream func(w http.ResponseWriter)
}

// OK returns a response with status 200 and the given body.
func OK(body any) Response { return Response{Status: http.StatusOK, Body: body} }

// RetryAfter returns the response with a Retry-After header that contains the wait, rounded to whole seconds but at least one. If
// the response already has a Header, that map is modified.
func (r Response) RetryAfter(wait time.Duration) Response {
	if r.Header == nil {
		r.Header = http.Header{}
	}

	r.Header.Set("Retry-After", strconv.Itoa(max(1, int(wait.Round(time.Second)/time.Second))))

	return r
}

// Write sends the response. If the body cannot be encoded, Write responds with 500 instead.
func (r Response) Write(w http.ResponseWriter) {
	body, err := encode(r.Body)
	if err != nil {
		r, body = Response{Status: http.StatusInternalServerError}, []byte(`{"description":"`+internalText+`"}`)
	}

	header := w.Header()
	maps.Copy(header, r.Header)

	if body != nil && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}

	w.WriteHeader(r.Status)
	_, _ = w.Write(body) // an error means that the client has disconnected
}

// encode returns the bytes of a Response's Body. It does not escape HTML characters, to keep URLs with an ampersand readable.
func encode(body any) ([]byte, error) {
	switch body := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return body, nil
	}

	var buffer bytes.Buffer

	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(body); err != nil {
		return nil, err
	}

	return buffer.Bytes(), nil
}
