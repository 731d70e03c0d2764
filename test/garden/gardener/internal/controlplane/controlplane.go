package controlplane

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/apiserver"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/certdir"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/child"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/port"
)

// stopWithin is how long etcd has to end before it is killed.
const stopWithin = 10 * time.Second

// Config says where a control plane finds and keeps what it needs.
type Config struct {
	// Dir keeps certificates and data.
	Dir string
	// Binaries is the folder of the executables, Logs that of the log files.
	Binaries string
	Logs     string
	Ports    *port.Book
}

// ControlPlane is a garden's control plane.
type ControlPlane struct {
	config Config
	etcd   *child.Child
	// servers are the API servers in the order in which they were started.
	servers []*child.Child
	ended   chan error

	// EtcdURL is where everything is stored.
	EtcdURL string
	// Certificates hold the authority of the garden's users and servers.
	Certificates *certdir.Dir
	// Kubernetes is the API server through which the garden is used.
	Kubernetes *apiserver.Server
}

// Start starts a control plane and waits until it serves Gardener's API. If that fails, nothing is left running.
func Start(ctx context.Context, config Config) (*ControlPlane, error) {
	certificates, err := certdir.Open(filepath.Join(config.Dir, "certificates"), "garden")
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{config: config, Certificates: certificates, ended: make(chan error, 1)}
	for _, start := range []func(context.Context) error{c.startEtcd, c.startKubernetes, c.startGardener} {
		if err := start(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("start the control plane: %w", err), c.Stop(context.WithoutCancel(ctx)))
		}
	}
	return c, nil
}

// Ended delivers an error when one of the processes has ended; nothing works any more then.
func (c *ControlPlane) Ended() <-chan error { return c.ended }

// Stop ends the processes, those first that need the others. API servers are not asked: they keep nothing, but would wait a minute for
// those who still watch something.
func (c *ControlPlane) Stop(ctx context.Context) error {
	var failures []error
	for _, server := range slices.Backward(c.servers) {
		failures = append(failures, server.Kill())
	}
	if c.etcd != nil {
		ctx, cancel := context.WithTimeout(ctx, stopWithin)
		defer cancel()
		failures = append(failures, c.etcd.Stop(ctx))
	}
	return errors.Join(failures...)
}

// watch tells those who wait for Ended when the process ends.
func (c *ControlPlane) watch(process *child.Child) {
	go func() {
		<-process.Exited()
		select {
		case c.ended <- process.Err():
		default: // Only the first end matters: the others follow from it.
		}
	}()
}

// add makes a process an API server of the control plane.
func (c *ControlPlane) add(server *child.Child) {
	c.servers = append(c.servers, server)
	c.watch(server)
}

func (c *ControlPlane) log(name string) string {
	return filepath.Join(c.config.Logs, name+".log")
}
