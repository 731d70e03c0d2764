package upstream

import (
	"errors"
	"io"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/tracing"
)

// Transport returns a transport that sends requests through next. A request fails with a *failure.Error if the concurrency limit
// or the circuit breaker rejects it. Each request that belongs to a trace gets a span.
func (s *System) Transport(next http.RoundTripper) http.RoundTripper {
	return transport{system: s, next: tracing.Transport(s.options.Name, next)}
}

type transport struct {
	system *System
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper. A call lasts until the caller has read or closed the body of the response, because a
// large response puts load on the upstream until its end.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	call, err := t.system.admit(request.Context())
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // the contract of http.RoundTripper requires this
		}

		return nil, err
	}

	panicked := true

	defer func() {
		if panicked {
			call.end(outcome{label: canceled}) // frees the slot
		}
	}()

	response, err := t.next.RoundTrip(request)
	result := t.system.outcomeOf(response, err)
	panicked = false

	if err != nil {
		call.end(result)

		return nil, err
	}

	response.Body = &body{ReadCloser: response.Body, call: call, result: result}

	return response, nil
}

// body is the body of a response. Reading it to the end, or closing it, ends the call.
type body struct {
	io.ReadCloser

	call   *call
	result outcome
}

// Read implements io.Reader. If the connection is lost during the read, the call counts as a failure of the system.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)

	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.call.end(b.result)
	default:
		b.call.end(outcomeOfError(err))
	}

	return n, err
}

// Close implements io.Closer. The call ends with the outcome of the response, even if the body was not read completely.
func (b *body) Close() error {
	b.call.end(b.result)

	return b.ReadCloser.Close()
}
