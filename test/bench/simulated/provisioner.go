package simulated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/graph"
)

const (
	endpoint = "/graphql"
	// noFeed is the response of a GraphQL server whose schema lacks the feed.
	noFeed = `{"errors":[{"message":"Cannot query field \"operationChanges\" on type \"Query\"."}],"data":null}`
)

// Provisioner is a running simulated Provisioner.
type Provisioner struct {
	runtimes *runtimes
	calls    *counters
	api      *http.Server
	address  string
	served   sync.WaitGroup
	access   *access
	release  sync.Once
}

// Start serves a Provisioner. Stop ends it.
func Start(ctx context.Context, behaviour Behaviour) (*Provisioner, error) {
	apiListener, err := listen(ctx)
	if err != nil {
		return nil, err
	}

	runtimesListener, err := listen(ctx)
	if err != nil {
		return nil, errors.Join(err, apiListener.Close())
	}

	calls := &counters{}

	access, err := newAccess(runtimesListener, calls)
	if err != nil {
		return nil, errors.Join(err, apiListener.Close(), runtimesListener.Close())
	}

	runtimes := newRuntimes(behaviour, access, calls)

	handler := graph.NewHandler(graph.Options{
		Service: runtimes, Log: logging.Discard(),
		Endpoint: endpoint, PlaygroundEndpoint: endpoint,
	})
	if behaviour.KymaProvisioner {
		handler = withoutFeed(handler, calls)
	}

	p := &Provisioner{
		runtimes: runtimes, calls: calls, access: access, address: apiListener.Addr().String(),
		api: &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout},
	}

	p.served.Go(func() { _ = p.api.Serve(apiListener) }) // always ends with an error, by Stop
	p.served.Go(func() { _ = access.serve() })

	return p, nil
}

func listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig

	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the simulated Provisioner: %w", err)
	}

	return listener, nil
}

// withoutFeed rejects the query of the feed, as a server without it in the schema, and passes all other requests on.
func withoutFeed(next http.Handler, calls *counters) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)

			return
		}

		if bytes.Contains(body, []byte("operationChanges")) {
			calls.feeds.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, noFeed)

			return
		}

		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// Stop stops the server and closes its connections.
func (p *Provisioner) Stop() error {
	p.Release()

	err := errors.Join(p.api.Close(), p.access.server.Close())
	p.served.Wait()

	return err
}

// URL returns the address of the GraphQL API.
func (p *Provisioner) URL() string { return "http://" + p.address + endpoint }

// Release ends all delays of Behaviour, for present and for later orders. It is idempotent.
func (p *Provisioner) Release() { p.release.Do(p.runtimes.release) }

// Calls returns the calls so far.
func (p *Provisioner) Calls() Calls { return p.calls.read() }

// Ordered returns the time of the first arrival of each order by its idempotency key, which is the ID of the broker's operation.
func (p *Provisioner) Ordered() map[string]time.Time {
	p.runtimes.mutex.Lock()
	defer p.runtimes.mutex.Unlock()

	return maps.Clone(p.runtimes.orders)
}
