package upstream

import (
	"errors"
	"io"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/tracing"
)

// Transport guards the requests that go through next, and has those of an operation told as parts of its trace. A request that is not let
// through fails with an error of package failure.
func (g *Guard) Transport(next http.RoundTripper) http.RoundTripper {
	return transport{guard: g, next: tracing.Transport(g.options.System, next)}
}

type transport struct {
	guard *Guard
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper. A call lasts until its answer is read or closed.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	pass, err := t.guard.admit(request.Context())
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // as every RoundTripper has to
		}

		return nil, err
	}

	// A panic below must not keep the turn.
	settled := false
	defer func() {
		if !settled {
			pass.end(outcome{label: canceled})
		}
	}()

	response, err := t.next.RoundTrip(request)
	result := outcomeOf(response, err)
	settled = true

	if err != nil {
		pass.end(result)

		return nil, err
	}

	response.Body = &answer{ReadCloser: response.Body, pass: pass, result: result}

	return response, nil
}

// answer ends the call when it was read.
type answer struct {
	io.ReadCloser

	pass   *pass
	result outcome
}

// Read implements io.Reader. An answer that breaks off is none.
func (a *answer) Read(into []byte) (int, error) {
	n, err := a.ReadCloser.Read(into)

	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		a.pass.end(a.result)
	default:
		a.pass.end(outcomeOfError(err))
	}

	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	a.pass.end(a.result)

	return a.ReadCloser.Close()
}
