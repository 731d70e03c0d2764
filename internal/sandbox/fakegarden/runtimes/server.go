package runtimes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

const (
	pathPrefix = "/runtimes/"

	headerTimeout = 10 * time.Second
	// shutdownTimeout is longer than the five seconds after which a connection counts as idle on which there was no request yet.
	shutdownTimeout = 15 * time.Second
)

// Options say where a server keeps what it needs to come back as the same.
type Options struct {
	// Dir is a folder that belongs to the server alone. It is made if it is missing.
	Dir string
	// Version returns the version of Kubernetes that a runtime says it is, 1.35.4.
	Version func(ctx context.Context, technicalID string) string
	Log     logrus.FieldLogger
}

// Server plays the API servers. Which runtimes are started is forgotten with the process, their objects are not.
type Server struct {
	listener  net.Listener
	tls       *tls.Config
	authority []byte
	version   func(ctx context.Context, technicalID string) string
	log       logrus.FieldLogger

	dir      string
	tokenKey []byte

	mu sync.RWMutex
	// runtimes are those that were started, by technical ID.
	runtimes map[string]*runtime
}

// runtime is what one API server knows.
type runtime struct {
	// clients are the authorities of client certificates.
	clients *x509.CertPool
	objects *objects
}

var _ gardenlet.Runtimes = (*Server)(nil)

// Listen opens the listener, at the same address as before and with the same authority, so that kubeconfigs outlive the process. If the
// address is taken meanwhile, it takes another.
func Listen(ctx context.Context, options Options) (*Server, error) {
	identity, err := loadIdentity(options.Dir)
	if err != nil {
		return nil, err
	}
	listener, err := listen(ctx, options.Dir)
	if err != nil {
		return nil, err
	}
	tokenKey, err := loadTokenKey(options.Dir)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &Server{
		listener:  listener,
		tls:       identity.tls,
		authority: identity.authority,
		version:   options.Version,
		log:       options.Log,
		dir:       options.Dir,
		tokenKey:  tokenKey,
		runtimes:  map[string]*runtime{},
	}, nil
}

// Start implements gardenlet.Runtimes.
func (s *Server) Start(ctx context.Context, technicalID string, clientCA []byte) (gardenlet.Endpoint, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(clientCA) {
		return gardenlet.Endpoint{}, fmt.Errorf("start %s: the client authority is not a PEM certificate", technicalID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	started := &runtime{clients: pool}
	if before, again := s.runtimes[technicalID]; again {
		started.objects = before.objects
	} else {
		opened, err := s.openObjects(ctx, technicalID)
		if err != nil {
			return gardenlet.Endpoint{}, err
		}
		started.objects = opened
	}
	s.runtimes[technicalID] = started
	return gardenlet.Endpoint{URL: "https://" + s.listener.Addr().String() + pathPrefix + technicalID, CA: s.authority}, nil
}

// Stop implements gardenlet.Runtimes. The objects of the runtime go with it.
func (s *Server) Stop(_ context.Context, technicalID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runtimes, technicalID)
	return s.removeObjects(technicalID)
}

// Serve answers until the context ends, which is no error.
func (s *Server) Serve(ctx context.Context) error {
	server := s.over(s.handler())
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(s.listener, "", "") }()
	select {
	case err := <-served:
		return fmt.Errorf("serve the runtimes: %w", err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(ending)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return fmt.Errorf("stop serving the runtimes: %w", err)
	}
	return nil
}

// Alone returns what serves one runtime on a listener of its own, by ServeTLS. There its paths begin at the root: Gardener's admin
// kubeconfigs keep host and port of an address, and no path.
func (s *Server) Alone(technicalID string) *http.Server {
	handler := s.handler()
	return s.over(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		beneath := r.Clone(r.Context())
		beneath.URL.Path, beneath.URL.RawPath = pathPrefix+technicalID+r.URL.Path, ""
		handler.ServeHTTP(w, beneath)
	}))
}

// over serves the handler as the runtimes are.
func (s *Server) over(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		TLSConfig:         s.tls.Clone(),
		ReadHeaderTimeout: headerTimeout,
		ErrorLog:          log.New(debugWriter{s.log}, "", 0),
	}
}

// Close ends a server that was never served.
func (s *Server) Close() error {
	return s.listener.Close()
}

// debugWriter takes what net/http logs, mostly about clients that break off handshakes.
type debugWriter struct {
	log logrus.FieldLogger
}

func (w debugWriter) Write(line []byte) (int, error) {
	w.log.WithField("server", "runtimes").Debug(string(line))
	return len(line), nil
}
