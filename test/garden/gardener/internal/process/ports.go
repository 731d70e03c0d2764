package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
	"github.com/environment-broker/environment-broker/internal/sandbox/freeport"
)

const (
	// minPort and maxPort are below the ephemeral port range, so that no outgoing connection uses a port while the garden is down,
	// and above the ports of package freeport.
	minPort = 20000
	maxPort = 29999
	// attempts is the number of random ports that Port tries for a new server.
	attempts = 1000
)

// Ports assigns ports to servers and stores them in a file, so that a server has the same address after a restart and kubeconfigs
// keep working. It is safe for concurrent use within a process. Use Lock to exclude other gardens.
type Ports struct {
	path string

	mu    sync.Mutex
	ports map[string]int
}

// OpenPorts reads the assigned ports from a file. A missing file means that no ports are assigned yet.
func OpenPorts(path string) (*Ports, error) {
	p := &Ports{path: path, ports: map[string]int{}}
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &p.ports)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ports of the garden from %s: %w", path, err)
	}
	return p, nil
}

// Port returns the port of a server. For a new server, it assigns a random port that is currently free, or returns an error if it
// finds none. The port of a known server may be in use: see WaitFree.
func (p *Ports) Port(server string) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if port, ok := p.ports[server]; ok {
		return port, nil
	}
	assigned := make(map[int]bool, len(p.ports))
	for _, port := range p.ports {
		assigned[port] = true
	}
	for range attempts {
		port := minPort + rand.IntN(maxPort-minPort+1)
		if !assigned[port] && freeport.Check(context.Background(), port) == nil {
			p.ports[server] = port
			return port, p.save()
		}
	}
	return 0, fmt.Errorf("none of %d ports between %d and %d is free for %s", attempts, minPort, maxPort, server)
}

// Release removes the assignment of a server's port. Unknown servers are ignored.
func (p *Ports) Release(server string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.ports[server]; !known {
		return nil
	}
	delete(p.ports, server)
	return p.save()
}

// save replaces the file atomically. The caller must hold the lock.
func (p *Ports) save() error {
	content, err := json.MarshalIndent(p.ports, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the ports of the garden: %w", err)
	}
	return atomicfile.Write(p.path, content)
}

// WaitFree waits until a server can listen on the port. After a garden has been killed, its servers can hold their ports for a
// moment. WaitFree returns an error if the context ends first.
func WaitFree(ctx context.Context, port int) error {
	return Until(ctx, freeport.Address(port)+" is free", func(ctx context.Context) error { return freeport.Check(ctx, port) })
}
