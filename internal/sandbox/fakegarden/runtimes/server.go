package runtimes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/atomicfile"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/kubeapi"
)

const (
	pathPrefix  = "/runtimes/"
	addressFile = "address"

	headerTimeout = 10 * time.Second
	// shutdownTimeout is longer than five seconds: until then, net/http does not count a connection without a request as idle.
	shutdownTimeout = 15 * time.Second
)

// Options configure a server.
type Options struct {
	// Dir is a folder that belongs to the server alone. It is created if it is missing. It holds the address, the certificate
	// authority, the key of the tokens, and a folder of objects for each runtime.
	Dir string
	// Version returns the version of Kubernetes that a runtime reports, such as 1.35.4.
	Version func(ctx context.Context, technicalID string) string
	Log     logrus.FieldLogger
}

// VersionOfShoot returns an Options.Version: the version in the Shoot of a runtime of the project. It reads the Shoot for each request
// of the version, so an upgrade is visible at once; a real runtime would report the old version until its control plane has changed.
func VersionOfShoot(garden client.Reader, project string, log logrus.FieldLogger) func(ctx context.Context, technicalID string) string {
	return func(ctx context.Context, technicalID string) string {
		name := strings.TrimPrefix(technicalID, gardenlet.TechnicalID(project, ""))
		shoot := &gardencorev1beta1.Shoot{}
		if err := garden.Get(ctx, client.ObjectKey{Namespace: gardenlet.Namespace(project), Name: name}, shoot); err != nil {
			log.WithError(err).WithField("shoot", name).Debug("cannot read the Kubernetes version of the runtime from its Shoot")
			return ""
		}
		return shoot.Spec.Kubernetes.Version
	}
}

// Server simulates the API servers. The objects of the runtimes survive the process, but the gardenlet has to start the runtimes
// again: until then, requests to them are 404. All runtimes have the same serving certificate and the same key for tokens; the
// client authority and the audience of the tokens are those of one runtime. It is safe for concurrent use.
type Server struct {
	listener  net.Listener
	tls       *tls.Config
	authority *certificate.Authority
	tokenKey  []byte
	version   func(ctx context.Context, technicalID string) string
	dir       string
	log       logrus.FieldLogger

	mu sync.RWMutex
	// runtimes has the started runtimes by technical ID. A runtime is replaced, never modified: requests read it without the
	// lock.
	runtimes map[string]*runtime
}

// runtime is one simulated API server. Each Start replaces it, because the client authority may be another one; the
// objects stay.
type runtime struct {
	technicalID string
	// clients are the authorities of client certificates.
	clients *x509.CertPool
	api     *kubeapi.Server
}

var _ gardenlet.Runtimes = (*Server)(nil)

// Listen opens the listener. Its address and the authority of its serving certificate are the same after a restart, so
// kubeconfigs stay valid. If another process has taken the address, Listen chooses a new one.
func Listen(ctx context.Context, options Options) (*Server, error) {
	authority, err := certificate.OpenAuthority(options.Dir, "runtimes of the local garden")
	if err != nil {
		return nil, err
	}
	pair, err := authority.IssueServer("runtimes", "127.0.0.1", "localhost")
	if err != nil {
		return nil, err
	}
	serving, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("loading the serving certificate of the runtimes: %w", err)
	}
	tokenKey, err := loadTokenKey(options.Dir)
	if err != nil {
		return nil, err
	}
	listener, err := listen(ctx, filepath.Join(options.Dir, addressFile))
	if err != nil {
		return nil, fmt.Errorf("listening for the runtimes: %w", err)
	}
	return &Server{
		listener: listener, authority: authority, tokenKey: tokenKey,
		tls: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{serving},
			// The authority of a client certificate depends on the path of the request.
			ClientAuth: tls.RequestClientCert,
		},
		version: options.Version, dir: options.Dir, log: options.Log,
		runtimes: map[string]*runtime{},
	}, nil
}

// listen opens the address in the file, or a free one if the file is missing or the address is in use, and writes a new address
// to the file. With a new address, the gardenlet publishes new addresses of all runtimes, and older kubeconfigs lead nowhere.
func listen(ctx context.Context, path string) (net.Listener, error) {
	var config net.ListenConfig
	last, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		if listener, err := config.Listen(ctx, "tcp", strings.TrimSpace(string(last))); err == nil {
			return listener, nil
		}
	}
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(path, []byte(listener.Addr().String()+"\n")); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// Start implements gardenlet.Runtimes. A running runtime keeps its objects and accepts certificates of the given
// authority from then on. Start holds the lock while it reads the objects, so that two calls cannot open the same folder.
func (s *Server) Start(ctx context.Context, technicalID string, clientCA []byte) (gardenlet.Endpoint, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(clientCA) {
		return gardenlet.Endpoint{}, fmt.Errorf("starting %s: the client authority is not a PEM certificate", technicalID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	started := &runtime{technicalID: technicalID, clients: pool}
	if present := s.runtimes[technicalID]; present != nil {
		started.api = present.api
	} else {
		api, err := s.openAPI(ctx, technicalID)
		if err != nil {
			return gardenlet.Endpoint{}, fmt.Errorf("opening the objects of runtime %s: %w", technicalID, err)
		}
		started.api = api
	}
	s.runtimes[technicalID] = started
	return gardenlet.Endpoint{
		URL: "https://" + s.listener.Addr().String() + pathPrefix + technicalID, CA: s.authority.CertificatePEM(),
	}, nil
}

// objectsDir returns the folder of the objects of a runtime. Stop removes it.
func (s *Server) objectsDir(technicalID string) string {
	return filepath.Join(s.dir, "objects", technicalID)
}

// Stop implements gardenlet.Runtimes. It removes the objects of the runtime, even of one that was started by an earlier process: a
// later Shoot of the same name gets an empty runtime.
func (s *Server) Stop(_ context.Context, technicalID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runtimes, technicalID)
	if err := os.RemoveAll(s.objectsDir(technicalID)); err != nil {
		return fmt.Errorf("removing the objects of runtime %s: %w", technicalID, err)
	}
	return nil
}

// Serve serves all runtimes until the context ends, which is not an error. It then waits for the requests in progress, at most
// shutdownTimeout, so that no handler writes files after Serve has returned. A server can serve once.
func (s *Server) Serve(ctx context.Context) error {
	server := s.httpServer(s)
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(s.listener, "", "") }()
	select {
	case err := <-served:
		return fmt.Errorf("serving the runtimes: %w", err)
	case <-ctx.Done():
	}
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(shutdown)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return fmt.Errorf("shutting down the runtimes: %w", err)
	}
	return nil
}

// Alone returns a server for one runtime, to be used with ServeTLS. It serves the runtime at the root, because the admin
// kubeconfigs of Gardener have a host and a port but no path.
func (s *Server) Alone(technicalID string) *http.Server {
	return s.httpServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, technicalID) }))
}

// ServeHTTP implements http.Handler. It serves all runtimes, each under its path. The API server of a runtime does not see the
// prefix of the path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, _ := strings.CutPrefix(r.URL.Path, pathPrefix)
	technicalID, _, _ := strings.Cut(path, "/")
	http.StripPrefix(pathPrefix+technicalID, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, technicalID)
	})).ServeHTTP(w, r)
}

// serve authenticates a request to a runtime and passes it to its API server, which authorizes it. A runtime that is not started
// is 404. The lock is held for the look-up only, so a watch does not delay Start and Stop.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, technicalID string) {
	s.mu.RLock()
	runtime := s.runtimes[technicalID]
	s.mu.RUnlock()
	if runtime == nil {
		kubeapi.Refuse(w, kubeapi.NotServed("no runtime is served here"))
		return
	}
	user, err := s.authenticate(r, runtime)
	if err != nil {
		kubeapi.Refuse(w, err)
		return
	}
	runtime.api.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
}

// httpServer returns a server with the TLS settings of all runtimes. Its errors are logged at level debug: clients that give up a
// handshake cause most of them. There is no write timeout, because a watch has no end.
func (s *Server) httpServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		TLSConfig:         s.tls.Clone(),
		ReadHeaderTimeout: headerTimeout,
		ErrorLog:          log.New(debugWriter{s.log}, "", 0),
	}
}

// Close closes the listener of a server whose Serve was never called. Serve closes it otherwise.
func (s *Server) Close() error { return s.listener.Close() }

// debugWriter logs what net/http reports, mostly aborted handshakes.
type debugWriter struct {
	log logrus.FieldLogger
}

// Write implements io.Writer.
func (w debugWriter) Write(line []byte) (int, error) {
	w.log.WithField("server", "runtimes").Debug(string(line))
	return len(line), nil
}
