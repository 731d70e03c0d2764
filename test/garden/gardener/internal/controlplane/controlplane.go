package controlplane

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/apiserver"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

// etcdStopTimeout is how long etcd may take to stop before it is killed.
const etcdStopTimeout = 10 * time.Second

// Config configures a control plane. All fields are required.
type Config struct {
	// Dir is the folder of certificates and data. A control plane in a used folder continues with its objects.
	Dir string
	// Binaries is the folder of the executables, Logs the folder of the log files.
	Binaries string
	Logs     string
	Ports    *process.Ports
}

// ControlPlane is a running control plane. Its exported fields do not change after Start.
type ControlPlane struct {
	config Config
	etcd   *process.Process
	// servers are the API servers in the order of their start.
	servers []*process.Process
	// ended has room for the first end of a server.
	ended chan error

	// EtcdURL is the address of etcd, which stores everything.
	EtcdURL string
	// Certificates hold the authority of the garden's users and servers.
	Certificates *apiserver.Certificates
	// Kubernetes is the API server for the users of the garden.
	Kubernetes *apiserver.Server
}

// Start starts a control plane and waits until it serves Gardener's API. If a server fails or the context ends first, Start stops
// all servers and returns the error.
func Start(ctx context.Context, config Config) (*ControlPlane, error) {
	certificates, err := apiserver.OpenCertificates(filepath.Join(config.Dir, "certificates"), "garden")
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{config: config, Certificates: certificates, ended: make(chan error, 1)}
	for _, start := range []func(context.Context) error{c.startEtcd, c.startKubernetes, c.startGardener} {
		if err := start(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), c.Stop(context.WithoutCancel(ctx)))
		}
	}
	return c, nil
}

// Ended delivers one error when a server has ended, for whatever reason, including Stop. The garden does not work without it.
func (c *ControlPlane) Ended() <-chan error { return c.ended }

// Stop stops the servers in the reverse order of their start, because API servers fail without etcd. They are killed: they have
// no state, but would wait a minute for open watches. Etcd is terminated, so that it closes its files, and killed after
// etcdStopTimeout.
func (c *ControlPlane) Stop(ctx context.Context) error {
	var failures []error
	for _, server := range slices.Backward(c.servers) {
		failures = append(failures, server.Kill())
	}
	if c.etcd != nil {
		ctx, cancel := context.WithTimeout(ctx, etcdStopTimeout)
		defer cancel()
		failures = append(failures, c.etcd.Stop(ctx))
	}
	return errors.Join(failures...)
}

// watch reports the end of the process to Ended. Its goroutine ends with the process.
func (c *ControlPlane) watch(process *process.Process) {
	go func() {
		<-process.Exited()
		select {
		case c.ended <- process.Err():
		default: // the first end has caused the others
		}
	}()
}

// add adds an API server to those that Stop stops, and watches it.
func (c *ControlPlane) add(server *process.Process) {
	c.servers = append(c.servers, server)
	c.watch(server)
}

// log returns the path of the log of a server.
func (c *ControlPlane) log(name string) string {
	return filepath.Join(c.config.Logs, name+".log")
}
