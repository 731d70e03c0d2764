package harness

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// FaultProxy forwards HTTP requests to a service. Tests inject faults into selected GraphQL calls, or hold these calls back. If
// several faults and holds match a call, the latest one applies. All methods may be called concurrently.
type FaultProxy struct {
	// URL is the address of the proxy, without a path.
	URL string

	mutex  sync.Mutex
	faults []*injected
}

// Match selects calls by the tenant header and by the name of the GraphQL operation. An empty field matches every value, so the
// zero Match selects all calls.
type Match struct{ Tenant, Operation string }

func (m Match) selects(call Match) bool {
	return (m.Tenant == "" || m.Tenant == call.Tenant) && (m.Operation == "" || m.Operation == call.Operation)
}

// Fault responds to a request instead of the service, which does not receive the request.
type Fault func(http.ResponseWriter, *http.Request)

// injected is a fault or a hold in effect. A hold has a nil fault and delays calls until it is lifted.
type injected struct {
	match  Match
	fault  Fault
	lifted chan struct{}
	held   int
}

// NewFaultProxy runs a proxy until the test ends. The proxy calls target for each request; target returns the URL of the service,
// which may change between requests.
func NewFaultProxy(tb testing.TB, target func() string) *FaultProxy {
	tb.Helper()

	proxy := &FaultProxy{}
	forward := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			if service, err := url.Parse(target()); err == nil {
				request.SetURL(service)
			}
		},
		// If the service is unreachable, the proxy breaks the caller's connection, as if there were no proxy.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if proxy.passes(w, r) {
			forward.ServeHTTP(w, r)
		}
	}))
	tb.Cleanup(server.Close)

	proxy.URL = server.URL

	return proxy
}

// Inject applies the fault to matching calls until lift is called. Repeated calls to lift have no effect.
func (p *FaultProxy) Inject(match Match, fault Fault) (lift func()) {
	return p.inject(&injected{match: match, fault: fault, lifted: make(chan struct{})})
}

// Hold delays matching calls until lift is called, then forwards them. Repeated calls to lift have no effect.
func (p *FaultProxy) Hold(match Match) (lift func()) {
	return p.inject(&injected{match: match, lifted: make(chan struct{})})
}

func (p *FaultProxy) inject(added *injected) (lift func()) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	p.faults = append(p.faults, added)

	return sync.OnceFunc(func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()

		close(added.lifted)

		p.faults = slices.DeleteFunc(p.faults, func(each *injected) bool { return each == added })
	})
}

// Held returns the number of calls that are currently delayed by holds with exactly this match.
func (p *FaultProxy) Held(match Match) int {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	held := 0

	for _, each := range p.faults {
		if each.match == match {
			held += each.held
		}
	}

	return held
}

// passes reports whether to forward a request. It blocks while a hold delays the request. If passes returns false, a fault has
// already responded, or the client is gone.
func (p *FaultProxy) passes(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}

	r.Body = io.NopCloser(bytes.NewReader(body))

	var call struct {
		OperationName string `json:"operationName"`
	}

	_ = json.Unmarshal(body, &call) // a request that is not GraphQL has no operation name

	matched := p.match(Match{Tenant: r.Header.Get("tenant"), Operation: call.OperationName})

	switch {
	case matched == nil:
		return true
	case matched.fault != nil:
		matched.fault(w, r)

		return false
	}

	defer p.count(matched, -1)

	select {
	case <-matched.lifted:
		return true
	case <-r.Context().Done():
		return false
	}
}

// match returns the latest fault or hold for a call, or nil. It counts a held call while it holds the mutex, so Held includes every
// call that a hold delays.
func (p *FaultProxy) match(call Match) *injected {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	for _, each := range slices.Backward(p.faults) {
		if each.match.selects(call) {
			if each.fault == nil {
				each.held++
			}

			return each
		}
	}

	return nil
}

func (p *FaultProxy) count(matched *injected, change int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	matched.held += change
}

// Refuse is a [Fault] that returns a permanent GraphQL error.
func Refuse(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"data":null,"errors":[{"message":"injected fault","extensions":{"error_code":400}}]}`)
}

// Disconnect is a [Fault] that closes the connection without a response.
func Disconnect(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// NoAnswer is a [Fault] that never responds. It waits until the client disconnects.
func NoAnswer(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Garbage is a [Fault] that responds with something other than GraphQL.
func Garbage(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "<html>no GraphQL here</html>")
}
