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
	// Dir is the folder for certificates and data. If it was used before, the control plane continues with its objects.
	Dir string
	// Binaries is the folder that contains the executables. Logs is the folder for log files.
	Binaries string
	Logs     string
	Ports    *process.Ports
}

// ControlPlane is a running control plane. Its exported fields do not change after Start.
type ControlPlane struct {
	config Config
	etcd   *process.Process
	// servers contains the API servers in the order in which they were started.
	servers []*process.Process
	// ended receives the error of the first server that exits. It has a buffer of one.
	ended chan error

	// EtcdURL is the address of etcd, which stores all objects of the garden and the runtimes.
	EtcdURL string
	// Certificates contains the CA for the garden's users and servers.
	Certificates *apiserver.Certificates
	// Kubernetes is the API server to which users of the garden connect.
	Kubernetes *apiserver.Server
}

// Start starts a control plane and waits until it serves Gardener's API. If a server fails or the context ends, Start stops all
// servers and returns the error.
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

// Ended returns a channel that receives the error of the first server that exits, including a server that Stop has stopped. The
// garden needs all of its servers.
func (c *ControlPlane) Ended() <-chan error { return c.ended }

// Stop stops the servers in the reverse order of their start, because API servers fail without etcd. API servers are killed: they
// have no state to save and would wait up to a minute for open watches. Etcd is terminated so that it can close its files; if
// that takes longer than etcdStopTimeout, it is killed.
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

// watch sends the error of the process to c.ended when the process exits. Its goroutine ends with the process.
func (c *ControlPlane) watch(process *process.Process) {
	go func() {
		<-process.Exited()
		select {
		case c.ended <- process.Err():
		default: // the first exit has caused the others
		}
	}()
}

// add registers an API server so that Stop stops it, and watches it.
func (c *ControlPlane) add(server *process.Process) {
	c.servers = append(c.servers, server)
	c.watch(server)
}

func (c *ControlPlane) log(name string) string {
	return filepath.Join(c.config.Logs, name+".log")
}
