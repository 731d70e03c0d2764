package runtimes

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/apiserver"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/atomicfile"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/certdir"
)

// host is an API server that is started when a runtime needs it. Its address, authority and objects outlive its process.
type host struct {
	config       Config
	name         string
	certificates *certdir.Dir

	mu sync.Mutex
	// server is nil while none runs.
	server *apiserver.Server
	// clientCAs are the authorities (PEM) of the users of each runtime that is served.
	clientCAs map[string][]byte
}

func openHost(config Config, name string) (*host, error) {
	certificates, err := certdir.Open(config.hostDir(name), name)
	if err != nil {
		return nil, err
	}
	return &host{config: config, name: name, certificates: certificates, clientCAs: map[string][]byte{}}, nil
}

// serve makes the host accept the users of a runtime, who have certificates of clientCA, and returns where it does.
func (h *host) serve(ctx context.Context, runtime string, clientCA []byte) (gardenlet.Endpoint, error) {
	server, err := h.admit(ctx, runtime, clientCA)
	if err != nil {
		return gardenlet.Endpoint{}, err
	}
	if err := awaitTrust(ctx, server, clientCA); err != nil {
		return gardenlet.Endpoint{}, err
	}
	return gardenlet.Endpoint{URL: server.URL, CA: server.CA}, nil
}

// admit adds the users of a runtime to those whom the host is told to accept, and starts it if it does not run.
func (h *host) admit(ctx context.Context, runtime string, clientCA []byte) (*apiserver.Server, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !bytes.Equal(h.clientCAs[runtime], clientCA) {
		h.clientCAs[runtime] = clientCA
		if err := h.writeClientCAs(); err != nil {
			delete(h.clientCAs, runtime)
			return nil, err
		}
	}
	if h.server != nil {
		return h.server, nil
	}
	server, err := h.start(ctx)
	if err != nil {
		return nil, err
	}
	h.server = server
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer end()
		h.report(server)
	}()
	go h.endNamespaces(ctx, server)
	return server, nil
}

// forget takes the users of a runtime off those whom the host accepts.
func (h *host) forget(runtime string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.clientCAs[runtime]; !known {
		return nil
	}
	delete(h.clientCAs, runtime)
	return h.writeClientCAs()
}

// writeClientCAs writes the file from which the API server learns whom to accept; it reads the file again when it changes.
func (h *host) writeClientCAs() error {
	all := h.certificates.CA()
	for _, clientCA := range h.clientCAs {
		all = append(all, clientCA...)
	}
	return atomicfile.Write(h.clientCAFile(), all)
}

func (h *host) clientCAFile() string { return h.certificates.Path("clients.crt") }

func (h *host) start(ctx context.Context) (*apiserver.Server, error) {
	number, err := h.config.Ports.Port(h.name)
	if err != nil {
		return nil, err
	}
	server, err := apiserver.Start(ctx, apiserver.Config{
		Name:         h.name,
		Binaries:     h.config.Binaries,
		Logs:         h.config.Logs,
		Port:         number,
		EtcdURL:      h.config.EtcdURL,
		EtcdPrefix:   etcdPrefix(h.name),
		Certificates: h.certificates,
		ClientCAFile: h.clientCAFile(),
	})
	if err != nil {
		return nil, err
	}
	if err := bindAdmins(ctx, server.Admin); err != nil {
		return nil, errors.Join(err, server.Kill())
	}
	h.config.Log.WithField("runtime", h.name).WithField("url", server.URL).Info("the API server of a runtime is ready")
	return server, nil
}

// report waits for the end of an API server and tells if nobody ended it. The next time that its runtime is needed, it is started again.
func (h *host) report(server *apiserver.Server) {
	<-server.Exited()
	if h.detach(server) {
		h.config.Log.WithField("runtime", h.name).WithError(server.Err()).Warn("the API server of a runtime has ended")
	}
}

// endNamespaces ends the namespaces of an API server that are to go, until the context ends.
func (h *host) endNamespaces(ctx context.Context, server *apiserver.Server) {
	log := h.config.Log.WithField("runtime", h.name)
	if err := endNamespaces(ctx, server.Admin, log); err != nil {
		log.WithError(err).Warn("nobody ends the namespaces of a runtime")
	}
}

// detach makes the host one without an API server, and says whether it was the given one until now.
func (h *host) detach(server *apiserver.Server) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server != server {
		return false
	}
	h.server = nil
	return true
}

// stop ends the API server if one runs. It is not asked: it keeps nothing, but would wait for those who still watch something.
func (h *host) stop() error {
	h.mu.Lock()
	server := h.server
	h.server = nil
	h.mu.Unlock()
	if server == nil {
		return nil
	}
	return server.Kill()
}
