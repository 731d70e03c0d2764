//go:build garden

package deployments_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// proxy is a proxy between the controller and the target's API server. It counts calls, and can be down.
type proxy struct {
	server *httptest.Server

	mu   sync.Mutex
	down bool
	// status is the status of all responses. With 0, the proxy returns the API server's responses.
	status int
	calls  []string
	// watches contains the number of started watches, by path.
	watches map[string]int
}

func newProxy(t *testing.T) *proxy {
	t.Helper()

	transport, err := rest.TransportFor(target)
	if err != nil {
		t.Fatal(err)
	}

	address, err := url.Parse(target.Host)
	if err != nil {
		t.Fatal(err)
	}

	forward := &httputil.ReverseProxy{
		Rewrite:   func(request *httputil.ProxyRequest) { request.SetURL(address) },
		Transport: transport, FlushInterval: -1, ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}

	p := &proxy{watches: map[string]int{}}
	p.server = httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		p.mu.Lock()
		down, status := p.down, p.status

		if request.URL.Query().Has("watch") {
			p.watches[request.URL.Path]++
		} else {
			p.calls = append(p.calls, request.Method+" "+request.URL.Path)
		}
		p.mu.Unlock()

		if down {
			panic(http.ErrAbortHandler)
		}

		if status != 0 {
			writer.WriteHeader(status)

			return
		}

		forward.ServeHTTP(writer, request)
	}))
	t.Cleanup(func() { p.server.CloseClientConnections(); p.server.Close() })

	return p
}

// kubeconfig returns a kubeconfig of the target that leads through the proxy.
func (p *proxy) kubeconfig() []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %s}}]\n"+
		"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: unused}}]\ncurrent-context: c\n", p.server.URL)
}

// setDown interrupts all connections, or accepts them again.
func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()

	if down {
		p.server.CloseClientConnections()
	}
}

// setStatus sets the status of all responses, or 0 for the API server's responses. It ends all watches.
func (p *proxy) setStatus(status int) {
	p.mu.Lock()
	p.status = status
	p.mu.Unlock()

	p.server.CloseClientConnections()
}

// take returns the calls and the number of watches by path since the last time.
func (p *proxy) take() (calls []string, watches map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()

	calls, watches = p.calls, p.watches
	p.calls, p.watches = nil, map[string]int{}

	return calls, watches
}
