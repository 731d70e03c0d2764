package runtimes

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
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/port"
)

// Simulated are runtimes without processes: this one answers for each, on a port of its own and with objects of its own. It knows few
// kinds of them and costs next to nothing.
type Simulated struct {
	config Config
	player *runtimes.Server

	mu sync.Mutex
	// servers are those of the runtimes that were started.
	servers map[string]*http.Server
}

// NewSimulated returns runtimes of a project's Shoots of which none has been started.
func NewSimulated(ctx context.Context, config Config, garden client.Reader, project string) (*Simulated, error) {
	player, err := runtimes.Listen(ctx, runtimes.Options{
		Dir: config.hostDir("simulated"), Version: runtimes.VersionOfShoot(garden, project, config.Log), Log: config.Log,
	})
	if err != nil {
		return nil, err
	}
	return &Simulated{config: config, player: player, servers: map[string]*http.Server{}}, nil
}

// Start implements gardenlet.Runtimes.
func (s *Simulated) Start(ctx context.Context, technicalID string, clientCA []byte) (gardenlet.Endpoint, error) {
	endpoint, err := s.player.Start(ctx, technicalID, clientCA)
	if err != nil {
		return gardenlet.Endpoint{}, err
	}
	number, err := s.config.Ports.Port(technicalID)
	if err != nil {
		return gardenlet.Endpoint{}, err
	}
	endpoint.URL = "https://" + port.Address(number)
	return endpoint, s.listen(ctx, technicalID, number)
}

// listen opens the port of a runtime, unless it is open.
func (s *Simulated) listen(ctx context.Context, technicalID string, number int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers[technicalID] != nil {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", port.Address(number))
	if err != nil {
		return fmt.Errorf("open the port of runtime %s: %w", technicalID, err)
	}
	server := s.player.Alone(technicalID)
	s.servers[technicalID] = server
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			s.config.Log.WithField("runtime", technicalID).WithError(err).Warn("a simulated runtime has ended")
		}
	}()
	return nil
}

// Stop implements gardenlet.Runtimes.
func (s *Simulated) Stop(ctx context.Context, technicalID string) error {
	s.mu.Lock()
	server := s.servers[technicalID]
	delete(s.servers, technicalID)
	s.mu.Unlock()
	if server != nil {
		if err := server.Close(); err != nil {
			return fmt.Errorf("close the port of runtime %s: %w", technicalID, err)
		}
	}
	if err := s.player.Stop(ctx, technicalID); err != nil {
		return err
	}
	return s.config.Ports.Release(technicalID)
}

// Close closes all ports; what is stored stays.
func (s *Simulated) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	failures := []error{s.player.Close()}
	for _, server := range s.servers {
		failures = append(failures, server.Close())
	}
	return errors.Join(failures...)
}
