// Package simulated simulates the broker's upstreams: a Provisioner with the real GraphQL schema, and the API servers of its
// runtimes. The runtimes become ready immediately, after a given time or on demand. The package counts the broker's calls.
//
// The Provisioner creates and changes runtimes and reports their status. Other mutations fail with an internal error.
package simulated

import (
	"maps"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/graph"
)

// endpoint is the path of the GraphQL API.
const endpoint = "/graphql"

// Behaviour configures how a Provisioner handles orders. With the zero value, a runtime is ready when the Provisioner responds
// to its order.
type Behaviour struct {
	// Takes is the time from the order of a runtime until it is ready.
	Takes time.Duration
	// Hold delays the readiness of all runtimes until Release.
	Hold bool
	// AnswerUntil is the number of orders that get a response immediately. Later orders wait for Release. Zero means no limit.
	AnswerUntil int
	// KymaProvisioner simulates the Kyma Provisioner: it has no feed, and it ignores idempotency keys.
	KymaProvisioner bool
}

// Calls counts the broker's calls, separately for each kind of call.
type Calls struct {
	// Orders counts calls to provisionRuntime, Feeds calls to operationChanges, and Kubeconfigs calls to runtimeStatus. Statuses
	// counts requests with runtimeOperationStatus.
	Orders, Statuses, Feeds, Kubeconfigs int
	// Polled counts the operations in the requests that Statuses counts.
	Polled int
	// Probes counts the requests to the API servers of runtimes.
	Probes int
	// Changes counts the changes that the feed has reported.
	Changes int
}

// All returns the total number of calls.
func (c Calls) All() int { return c.Orders + c.Statuses + c.Feeds + c.Kubeconfigs + c.Probes }

// Provisioner is a running simulated Provisioner. Its methods can be called concurrently.
type Provisioner struct {
	// URL is the address of the GraphQL API.
	URL string
	// Release ends all delays of Behaviour, for existing and later orders. Repeated calls have no effect.
	Release func()

	service *service
}

// Start runs a Provisioner and the API servers of its runtimes until the test ends. When the test ends, orders that are still
// waiting get their responses.
func Start(tb testing.TB, behaviour Behaviour) *Provisioner {
	tb.Helper()

	service := &service{
		behaviour: behaviour, released: make(chan struct{}),
		byKey: map[string]string{}, states: map[string]process.State{}, arrivals: map[string]time.Time{},
	}
	service.kubeconfig = startRuntimes(tb, func() { service.count(func(calls *Calls) { calls.Probes++ }) })

	open := auth.Authorizer{Authenticator: auth.NoAuthentication{}}
	server := httptest.NewServer(withPolled(open.Require(auth.RoleOSB)(graph.NewHandler(graph.Options{
		Service: service, Log: logging.Discard(), Endpoint: endpoint, PlaygroundEndpoint: endpoint,
	}))))
	release := sync.OnceFunc(service.release)

	tb.Cleanup(func() {
		release() // The server's Close waits for requests in progress.
		server.CloseClientConnections()
		server.Close()
	})

	return &Provisioner{URL: server.URL + endpoint, Release: release, service: service}
}

// Calls returns the call counts so far.
func (p *Provisioner) Calls() Calls {
	p.service.mutex.Lock()
	defer p.service.mutex.Unlock()

	return p.service.calls
}

// Ordered returns the time at which each order first arrived. The map is keyed by idempotency key, which is the ID of the
// broker's operation. It includes orders that have not received a response.
func (p *Provisioner) Ordered() map[string]time.Time {
	p.service.mutex.Lock()
	defer p.service.mutex.Unlock()

	return maps.Clone(p.service.arrivals)
}
