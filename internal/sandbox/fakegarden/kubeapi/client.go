package kubeapi

import (
	"context"
	"io"
	"maps"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Calls counts requests by the verbs of the API server's audit log: get, list, watch, create, update, patch, delete. Server-side
// apply is a patch. The zero value has no calls.
type Calls struct {
	mu    sync.Mutex
	verbs map[string]int
}

// Counts returns a copy of the number of calls so far, by verb. Calls count before they are sent, so rejected calls count too.
func (c *Calls) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.verbs)
}

func (c *Calls) add(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verbs == nil {
		c.verbs = map[string]int{}
	}
	c.verbs[verb]++
}

// Client returns a client that calls the server without a network, and the counts of its calls. The client sends every request
// that it would send to a real API server, as JSON. It is safe for concurrent use and needs no closing. Objects go through JSON
// both ways, so that a field that JSON loses or changes is noticed here too, and no caller shares memory with the server.
func (s *Server) Client() (client.WithWatch, *Calls, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range s.options.Kinds {
		scope := meta.RESTScopeRoot
		if kind.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(kind.GroupVersionKind, scope)
	}
	calls := &Calls{}
	config := &rest.Config{Host: "http://in-process", QPS: -1, WarningHandler: rest.NoWarnings{}}
	config.ContentType = runtime.ContentTypeJSON
	c, err := client.NewWithWatch(config, client.Options{
		HTTPClient: &http.Client{Transport: transport{s, calls}}, Scheme: s.options.Scheme, Mapper: mapper,
	})
	return c, calls, err
}

// transport is an HTTP transport that calls a handler in this process. Each request has a goroutine, which ends with the handler.
// A handler that streams its response, as a watch does, waits for the reader of the body.
type transport struct {
	*Server

	calls *Calls
}

// RoundTrip implements http.RoundTripper. The context of the handler ends with that of the request, or when the body of the
// response is closed. A response that has started can be read to its end even if the context ends.
//
// RoundTrip does not return before the handler has started its response or has ended. So a change whose caller gives up is either
// complete or will never be made: callers that stop may remove the folder of the server.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if parsed, err := t.parse(r); err == nil {
		t.calls.add(parsed.verb)
	}
	ctx, cancel := context.WithCancel(r.Context())
	reader, writer := io.Pipe()
	response := &responseWriter{PipeWriter: writer, header: http.Header{}, status: make(chan int, 1)}
	request := r.WithContext(ctx)
	if request.Body == nil {
		request.Body = http.NoBody
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		t.ServeHTTP(response, request)
		response.WriteHeader(http.StatusOK)
		_ = request.Body.Close() // the body is in memory
		_ = writer.Close()       // it never fails
	}()
	select {
	case code := <-response.status:
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
			Header: response.header, Body: responseBody{reader, cancel}, Request: r,
		}, nil
	case <-r.Context().Done():
		cancel()
		_ = reader.Close() // it never fails, and ends a handler that writes
		<-ended
		return nil, r.Context().Err()
	}
}

// responseWriter passes the response of a handler to the caller of RoundTrip.
type responseWriter struct {
	*io.PipeWriter

	header http.Header
	// status delivers the status code once. It has a buffer, so that a handler ends even if the caller has given up. Later codes
	// are dropped.
	status chan int
	sent   bool
}

// Header implements http.ResponseWriter. Changes after the first write have no effect on the client.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. It hands the response to RoundTrip, which returns it before the body is complete.
func (w *responseWriter) WriteHeader(code int) {
	if !w.sent {
		w.sent = true
		w.status <- code
	}
}

// Write implements io.Writer. It blocks until the client has read the content, and fails if the client has closed the body.
func (w *responseWriter) Write(content []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.PipeWriter.Write(content)
}

// Flush sends the header. The content needs no flushing.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

// responseBody ends the handler when it is closed.
type responseBody struct {
	io.ReadCloser

	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b responseBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}
