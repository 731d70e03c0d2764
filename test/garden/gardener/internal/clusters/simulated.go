package clusters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/runtimes"
	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
)

// Simulated serves runtimes in this process, each with its own port and objects. A runtime uses almost no memory or CPU time. It
// serves only a few kinds and does not validate objects. Simulated is safe for concurrent use.
type Simulated struct {
	config Config
	// simulator contains the objects and handlers of all runtimes.
	simulator *runtimes.Server

	mu sync.Mutex
	// servers contains the servers of started runtimes, keyed by technical ID.
	servers map[string]*http.Server
}

// NewSimulated returns a Simulated without running runtimes. A runtime reports the Kubernetes version of its Shoot, which is read
// from garden.
func NewSimulated(ctx context.Context, config Config, garden client.Reader) (*Simulated, error) {
	simulator, err := runtimes.Listen(ctx, runtimes.Options{
		Dir: config.hostDir("simulated"), Version: runtimes.VersionOfShoot(garden, config.Log), Log: config.Log,
	})
	if err != nil {
		return nil, err
	}
	return &Simulated{config: config, simulator: simulator, servers: map[string]*http.Server{}}, nil
}

// Start implements gardenlet.Runtimes. The runtime continues with its objects from earlier starts, unless Stop has deleted them.
func (s *Simulated) Start(ctx context.Context, technicalID string, clientCA []byte) (gardenlet.Endpoint, error) {
	endpoint, err := s.simulator.Start(ctx, technicalID, clientCA)
	if err != nil {
		return gardenlet.Endpoint{}, err
	}
	number, err := s.config.Ports.Port(technicalID)
	if err != nil {
		return gardenlet.Endpoint{}, err
	}
	endpoint.URL = "https://" + freeport.Address(number)
	return endpoint, s.listen(ctx, technicalID, number)
}

// listen opens the port of a runtime unless it is already open, because the gardenlet can start a runtime more than once.
func (s *Simulated) listen(ctx context.Context, technicalID string, number int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers[technicalID] != nil {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", freeport.Address(number))
	if err != nil {
		return fmt.Errorf("opening the port of runtime %s: %w", technicalID, err)
	}
	server := s.simulator.ServerFor(technicalID)
	s.servers[technicalID] = server
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.config.Log.WithField("runtime", technicalID).WithError(err).Warn("a simulated runtime has ended")
		}
	}()
	return nil
}

// Stop implements gardenlet.Runtimes. Like Own.Stop, it can be repeated.
func (s *Simulated) Stop(ctx context.Context, technicalID string) error {
	s.mu.Lock()
	server := s.servers[technicalID]
	delete(s.servers, technicalID)
	s.mu.Unlock()
	if server != nil {
		if err := server.Close(); err != nil {
			return fmt.Errorf("closing the port of runtime %s: %w", technicalID, err)
		}
	}
	if err := s.simulator.Stop(ctx, technicalID); err != nil {
		return err
	}
	return s.config.Ports.Release(technicalID)
}

// Close closes all ports. The objects remain on disk for the next garden.
func (s *Simulated) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	failures := []error{s.simulator.Close()}
	for _, server := range s.servers {
		failures = append(failures, server.Close())
	}
	return errors.Join(failures...)
}
