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

// FaultProxy forwards HTTP requests to a service. Tests inject faults into the GraphQL calls that they select; the fault that was injected
// last wins.
type FaultProxy struct {
	// URL is the address of the proxy, without a path.
	URL string

	mutex  sync.Mutex
	faults []*injected
}

// Match selects calls by tenant and by the name of the GraphQL operation. An empty field selects all.
type Match struct{ Tenant, Operation string }

func (m Match) selects(call Match) bool {
	return (m.Tenant == "" || m.Tenant == call.Tenant) && (m.Operation == "" || m.Operation == call.Operation)
}

// Fault answers a request in place of the service.
type Fault func(http.ResponseWriter, *http.Request)

// injected is a fault in effect. Without a fault, calls are held until it is lifted.
type injected struct {
	match  Match
	fault  Fault
	lifted chan struct{}
	held   int
}

// NewFaultProxy runs a proxy until the test ends. Target returns the URL of the service, asked for with each request.
func NewFaultProxy(tb testing.TB, target func() string) *FaultProxy {
	tb.Helper()

	proxy := &FaultProxy{}
	forward := &httputil.ReverseProxy{
		Rewrite: func(request *httputil.ProxyRequest) {
			if service, err := url.Parse(target()); err == nil {
				request.SetURL(service)
			}
		},
		// Where the service cannot be reached, the caller's connection breaks, as it would without a proxy.
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

// Inject answers the matching calls with the fault until it is lifted. Lift may be called again.
func (p *FaultProxy) Inject(match Match, fault Fault) (lift func()) {
	return p.inject(&injected{match: match, fault: fault, lifted: make(chan struct{})})
}

// Hold keeps the matching calls from arriving until the hold is lifted; then they are forwarded. Lift may be called again.
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

// Held returns how many calls are being held by holds with exactly this match.
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

// passes reports whether a request is to be forwarded, once nothing holds it. Otherwise it is answered.
func (p *FaultProxy) passes(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}

	r.Body = io.NopCloser(bytes.NewReader(body))

	var call struct {
		OperationName string `json:"operationName"`
	}

	_ = json.Unmarshal(body, &call) // other requests have no operation

	met := p.meet(Match{Tenant: r.Header.Get("tenant"), Operation: call.OperationName})

	switch {
	case met == nil:
		return true
	case met.fault != nil:
		met.fault(w, r)

		return false
	}

	defer p.count(met, -1)

	select {
	case <-met.lifted:
		return true
	case <-r.Context().Done():
		return false
	}
}

// meet returns the fault for a call, or nil. A call that meets a hold counts as held.
func (p *FaultProxy) meet(call Match) *injected {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	for _, each := range slices.Backward(p.faults) {
		if each.match.selects(call) {
			each.held++

			return each
		}
	}

	return nil
}

func (p *FaultProxy) count(met *injected, change int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	met.held += change
}

// Refuse is a [Fault]: a GraphQL error that is final.
func Refuse(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"data":null,"errors":[{"message":"injected fault","extensions":{"error_code":400}}]}`)
}

// Disconnect is a [Fault]: the connection breaks before an answer.
func Disconnect(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// NoAnswer is a [Fault]: the answer never comes.
func NoAnswer(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Garbage is a [Fault]: the answer is not GraphQL.
func Garbage(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "<html>no GraphQL here</html>")
}
