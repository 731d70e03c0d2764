package clusters

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// Own runs a kube-apiserver for each runtime, so runtimes are as isolated as real clusters. It is safe for concurrent use.
type Own struct {
	config Config
	// starts limits the number of concurrent starts to the number of cores. Each start uses one core for a few seconds, so with too
	// many concurrent starts the API servers would not be ready in time.
	starts chan struct{}

	mu    sync.Mutex
	hosts map[string]*host
}

// NewOwn returns an Own without any running runtimes.
func NewOwn(config Config) *Own {
	return &Own{config: config, starts: make(chan struct{}, runtime.NumCPU()), hosts: map[string]*host{}}
}

// Start implements gardenlet.Runtimes. It waits for a free slot in o.starts. If the runtime's API server has exited, Start
// restarts it.
func (o *Own) Start(ctx context.Context, technicalID string, clientCA []byte) (gardenlet.Endpoint, error) {
	select {
	case o.starts <- struct{}{}:
		defer func() { <-o.starts }()
	case <-ctx.Done():
		return gardenlet.Endpoint{}, fmt.Errorf("waiting for other runtimes to start: %w", ctx.Err())
	}
	host, err := o.host(technicalID)
	if err != nil {
		return gardenlet.Endpoint{}, err
	}
	return host.serve(ctx, technicalID, clientCA)
}

// Stop implements gardenlet.Runtimes. It deletes the objects, certificates and port of a runtime even if its API server is not
// running, because the garden may have crashed during an earlier Stop.
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
		return fmt.Errorf("removing the certificates of a runtime: %w", err)
	}
	return o.config.Ports.Release(technicalID)
}

// Close stops all API servers. Their objects remain in etcd for the next garden.
func (o *Own) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var failures []error
	for _, host := range o.hosts {
		failures = append(failures, host.stop())
	}
	return errors.Join(failures...)
}

// host returns the host of the named runtime. The first call for a runtime opens its host.
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

// sharedName is the name of the shared API server. It cannot conflict with a technical ID, because these start with "shoot--".
const sharedName = "shared"

// Shared runs one kube-apiserver for all runtimes. Users of one runtime can see the objects of all runtimes, and objects remain
// when a runtime is deleted. It supports about 1,100 runtimes, because each TLS handshake contains a list of all client CAs,
// which is limited to 64 KiB. It is safe for concurrent use.
type Shared struct {
	host *host
}

// NewShared returns a Shared whose API server is not running yet.
func NewShared(config Config) (*Shared, error) {
	host, err := openHost(config, sharedName)
	if err != nil {
		return nil, err
	}
	return &Shared{host: host}, nil
}

// Start implements gardenlet.Runtimes. The first call starts the API server.
func (s *Shared) Start(ctx context.Context, technicalID string, clientCA []byte) (gardenlet.Endpoint, error) {
	return s.host.serve(ctx, technicalID, clientCA)
}

// Stop implements gardenlet.Runtimes. It only revokes the client certificates of the runtime.
func (s *Shared) Stop(_ context.Context, technicalID string) error {
	return s.host.forget(technicalID)
}

// Close stops the API server. Its objects remain in etcd.
func (s *Shared) Close() error { return s.host.stop() }
