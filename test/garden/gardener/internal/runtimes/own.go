package runtimes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// Own gives each runtime an API server of its own.
type Own struct {
	config Config
	// starts bounds how many are started at once: each keeps a core busy for some seconds.
	starts chan struct{}

	mu    sync.Mutex
	hosts map[string]*host
}

// NewOwn returns runtimes of which none has been started.
func NewOwn(config Config) *Own {
	return &Own{config: config, starts: make(chan struct{}, runtime.NumCPU()), hosts: map[string]*host{}}
}

// Start implements gardenlet.Runtimes.
func (o *Own) Start(ctx context.Context, technicalID string, clientCA []byte) (gardenlet.Endpoint, error) {
	select {
	case o.starts <- struct{}{}:
		defer func() { <-o.starts }()
	case <-ctx.Done():
		return gardenlet.Endpoint{}, fmt.Errorf("wait for other runtimes that are started: %w", ctx.Err())
	}
	host, err := o.host(technicalID)
	if err != nil {
		return gardenlet.Endpoint{}, err
	}
	return host.serve(ctx, technicalID, clientCA)
}

// Stop implements gardenlet.Runtimes. It does all of its work for an unknown runtime too: the garden may have died in the midst of it.
func (o *Own) Stop(ctx context.Context, technicalID string) error {
	o.mu.Lock()
	host := o.hosts[technicalID]
	delete(o.hosts, technicalID)
	o.mu.Unlock()
	if host != nil {
		if err := host.stop(); err != nil {
			return err
		}
	}
	if err := wipe(ctx, o.config.EtcdURL, technicalID); err != nil {
		return err
	}
	if err := os.RemoveAll(o.config.hostDir(technicalID)); err != nil {
		return fmt.Errorf("remove the certificates of a runtime: %w", err)
	}
	return o.config.Ports.Release(technicalID)
}

// Close ends all API servers; what they stored stays.
func (o *Own) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var failures []error
	for _, host := range o.hosts {
		failures = append(failures, host.stop())
	}
	return errors.Join(failures...)
}

func (o *Own) host(name string) (*host, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := o.hosts[name]; ok {
		return known, nil
	}
	host, err := openHost(o.config, name)
	if err != nil {
		return nil, err
	}
	o.hosts[name] = host
	return host, nil
}
