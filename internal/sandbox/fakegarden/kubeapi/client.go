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

// Calls counts requests by API verb: get, list, watch, create, update, patch, delete. Server-side apply counts as patch. The zero
// value is ready to use.
type Calls struct {
	mu    sync.Mutex
	verbs map[string]int
}

// Counts returns a copy of the current counts, keyed by verb. Requests are counted before they are sent, so rejected requests are
// included.
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

// Client returns a client that calls the server without a network, and the counts of its calls. The client sends the same JSON
// requests that it would send to a real API server. Encoding every object in both directions reveals fields that JSON loses or
// changes, and prevents callers from sharing memory with the server. The client is safe for concurrent use and needs no cleanup.
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
	config := s.Config()
	c, err := client.NewWithWatch(config, client.Options{
		HTTPClient: &http.Client{Transport: transport{s, calls}}, Scheme: s.options.Scheme, Mapper: mapper,
	})
	return c, calls, err
}

// Config returns a configuration for clients that call the server without a network. Their calls are not counted.
func (s *Server) Config() *rest.Config {
	config := &rest.Config{Host: "http://in-process", QPS: -1, WarningHandler: rest.NoWarnings{}, Transport: transport{s, &Calls{}}}
	config.ContentType = runtime.ContentTypeJSON
	return config
}

// transport is an http.RoundTripper that calls a handler in this process, in a separate goroutine for each request. A handler
// that streams its response, such as a watch, blocks until the client reads the body.
type transport struct {
	*Server

	calls *Calls
}

// RoundTrip implements http.RoundTripper. The handler's context ends with the request's context or when the response body is
// closed. A handler that has started its response can complete it even after its context has ended.
//
// RoundTrip returns only after the handler has started its response or has ended. If a caller cancels a request, the change is
// therefore complete or will never happen, and the caller can safely remove the server's folder.
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
		_ = writer.Close()       // Close never fails
	}()
	select {
	case code := <-response.status:
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
			Header: response.header, Body: responseBody{reader, cancel}, Request: r,
		}, nil
	case <-r.Context().Done():
		cancel()
		_ = reader.Close() // Close never fails; it ends a handler that is writing
		<-ended
		return nil, r.Context().Err()
	}
}

// responseWriter passes the handler's response to the caller of RoundTrip.
type responseWriter struct {
	*io.PipeWriter

	header http.Header
	// status receives the first status code; later codes are dropped. It has a buffer, so that the handler can end even if the
	// caller has canceled the request.
	status chan int
	sent   bool
}

// Header implements http.ResponseWriter. Changes after the first write have no effect.
func (w *responseWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. It makes RoundTrip return the response before the body is complete.
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

// Flush sends the header. The body is not buffered.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

// responseBody is a response body whose Close method cancels the handler.
type responseBody struct {
	io.ReadCloser

	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b responseBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}
