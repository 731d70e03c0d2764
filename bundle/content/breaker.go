package content

import (
	"net/http"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

const (
	// callsPerServer is the maximum number of concurrent calls to one content server.
	callsPerServer = 64
	// maxServers is the maximum number of circuit breakers. When a call to another server would exceed it, all breakers are dropped,
	// including the open ones. This is rare, because only provisioners set the addresses of content servers.
	maxServers = 64
)

// breakers contains a circuit breaker for each content server. While a server does not respond or rejects the token, it receives only one
// call per pause, for all Bundles together.
type breakers struct {
	next  http.RoundTripper
	pause time.Duration

	mu      sync.Mutex
	servers map[string]http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b *breakers) RoundTrip(request *http.Request) (*http.Response, error) {
	return b.of(request.URL.Host).RoundTrip(request) //nolint:wrapcheck // net/http adds the address
}

// CloseIdleConnections makes http.Client.CloseIdleConnections work.
func (b *breakers) CloseIdleConnections() {
	if closing, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		closing.CloseIdleConnections()
	}
}

func (b *breakers) of(host string) http.RoundTripper {
	b.mu.Lock()
	defer b.mu.Unlock()

	if found := b.servers[host]; found != nil {
		return found
	}

	if len(b.servers) >= maxServers {
		clear(b.servers)
	}

	b.servers[host] = upstream.New(upstream.Options{
		Name: "content", Title: "the content server " + host, Component: failure.ComponentBundles,
		Calls: callsPerServer, Pause: b.pause, Fault: fault,
	}).Transport(b.next)

	return b.servers[host]
}

// fault describes the failure of the server that a response reports, or returns "" if the server is working. A replica that does
// not have a Bundle's content yet responds with 503 and a Retry-After header, which does not count as a failure.
func fault(response *http.Response) string {
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		return "it rejects the token"
	case response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != "":
		return ""
	default:
		return upstream.ServerFault(response)
	}
}
