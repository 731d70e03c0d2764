package runtimes

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// sharedName is what the API server of all runtimes is called. No technical ID is like it: these begin with "shoot--".
const sharedName = "shared"

// Shared lets one API server play all runtimes. It accepts the users of each, so they see each other's objects, and those stay when a
// runtime is deleted.
type Shared struct {
	host *host
}

// NewShared returns runtimes whose API server has not been started.
func NewShared(config Config) (*Shared, error) {
	host, err := openHost(config, sharedName)
	if err != nil {
		return nil, err
	}
	return &Shared{host: host}, nil
}

// Start implements gardenlet.Runtimes.
func (s *Shared) Start(ctx context.Context, technicalID string, clientCA []byte) (gardenlet.Endpoint, error) {
	return s.host.serve(ctx, technicalID, clientCA)
}

// Stop implements gardenlet.Runtimes.
func (s *Shared) Stop(_ context.Context, technicalID string) error {
	return s.host.forget(technicalID)
}

// Close ends the API server; what it stored stays.
func (s *Shared) Close() error { return s.host.stop() }
