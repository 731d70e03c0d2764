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
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/program/atomicfile"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/certificate"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/kubeapi"
)

const (
	pathPrefix  = "/runtimes/"
	addressFile = "address"

	headerTimeout = 10 * time.Second
	// shutdownTimeout must be longer than five seconds: net/http closes a connection that never sent a request only after that time.
	shutdownTimeout = 15 * time.Second
)

// Options configures a server.
type Options struct {
	// Dir is a folder that only this server may use. It is created if it is missing. It contains the address, the CA of the serving
	// certificate, the key that signs tokens, and a folder of objects for each runtime.
	Dir string
	// Version returns the Kubernetes version that a runtime reports, such as 1.35.4.
	Version func(ctx context.Context, technicalID string) string
	Log     logrus.FieldLogger
	// More contains kinds that every runtime serves in addition to the built-in ones. It is optional.
	More More
}

// More contains additional kinds and their rules.
type More struct {
	Kinds []kubeapi.Kind
	// AddToScheme registers the Go types of Kinds.
	AddToScheme func(*k8sruntime.Scheme) error
	// Admit completes and validates the objects of all kinds, like kubeapi.Options.Admit.
	Admit func(ctx context.Context, objects client.Reader, old, object client.Object) error
	// AllowsPath reports whether a ClusterRole allows a verb for a path that does not belong to a resource. It is called for
	// SubjectAccessReviews.
	AllowsPath func(role, verb, path string) bool
}

// VersionOfShoot returns a function for Options.Version that reads the version from the Shoot of the runtime. It reads the Shoot
// for each request, so an upgrade is visible immediately. A real runtime would report the old version until its control plane is
// upgraded.
func VersionOfShoot(garden client.Reader, log logrus.FieldLogger) func(ctx context.Context, technicalID string) string {
	return func(ctx context.Context, technicalID string) string {
		project, name := gardenlet.ParseTechnicalID(technicalID)
		shoot := &gardencorev1beta1.Shoot{}
		if err := garden.Get(ctx, client.ObjectKey{Namespace: gardenlet.Namespace(project), Name: name}, shoot); err != nil {
			log.WithError(err).WithField("shoot", name).Debug("cannot read the Kubernetes version of the runtime from its Shoot")
			return ""
		}
		return shoot.Spec.Kubernetes.Version
	}
}

// Server simulates the API servers of runtimes. Objects survive a restart of the process, but requests to a runtime return 404
// until the gardenlet has started the runtime again. All runtimes share a serving certificate and a token key; each has its own
// client CA and token audience. Server is safe for concurrent use.
type Server struct {
	listener  net.Listener
	tls       *tls.Config
	authority *certificate.Authority
	tokenKey  []byte
	version   func(ctx context.Context, technicalID string) string
	more      More
	dir       string
	log       logrus.FieldLogger

	mu sync.RWMutex
	// runtimes contains the started runtimes, keyed by technical ID. Runtimes are replaced, never modified, so requests use them
	// without the lock.
	runtimes map[string]*runtime
}

// runtime is one simulated API server. Each Start creates a new value with the same objects, because the client CA can change.
type runtime struct {
	technicalID string
	// clients contains the CAs whose client certificates the runtime accepts.
	clients *x509.CertPool
	api     *kubeapi.Server
}

var _ gardenlet.Runtimes = (*Server)(nil)

// Listen opens the listener. The address and the CA of the serving certificate stay the same across restarts, so kubeconfigs
// remain valid. If another process is using the address, Listen chooses a new one.
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
			// The CA for client certificates depends on the path of the request, so byCertificate verifies client certificates, not the
			// TLS handshake.
			ClientAuth: tls.RequestClientCert,
		},
		version: options.Version, more: options.More, dir: options.Dir, log: options.Log,
		runtimes: map[string]*runtime{},
	}, nil
}

// listen listens on the address in the file at path. If the file does not exist or the address is in use, it listens on a free
// port and writes the new address to the file. The gardenlet then publishes the new addresses of all runtimes, and older
// kubeconfigs stop working.
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

// Start implements gardenlet.Runtimes. A runtime that is already running keeps its objects, but from now on accepts only
// certificates signed by the given CA. Start holds the lock while it loads the objects, so that concurrent calls never open the
// same folder.
func (s *Server) Start(ctx context.Context, technicalID string, clientCA []byte) (gardenlet.Endpoint, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(clientCA) {
		return gardenlet.Endpoint{}, fmt.Errorf("starting %s: the client CA is not a PEM certificate", technicalID)
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

// objectsDir returns the folder for a runtime's objects. Stop removes it.
func (s *Server) objectsDir(technicalID string) string {
	return filepath.Join(s.dir, "objects", technicalID)
}

// Stop implements gardenlet.Runtimes. It also removes the objects of a runtime that an earlier process started, so that a later
// Shoot with the same name gets an empty runtime.
func (s *Server) Stop(_ context.Context, technicalID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runtimes, technicalID)
	if err := os.RemoveAll(s.objectsDir(technicalID)); err != nil {
		return fmt.Errorf("removing the objects of runtime %s: %w", technicalID, err)
	}
	return nil
}

// Serve serves all runtimes until the context ends, which is not an error. It then waits up to shutdownTimeout for requests in
// progress, so that no handler writes files after Serve has returned. Serve must not be called twice.
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

// ServerFor returns an HTTP server for a single runtime, to be started with ServeTLS. The runtime is served at the root path,
// because Gardener's admin kubeconfigs contain a host and a port but no path.
func (s *Server) ServerFor(technicalID string) *http.Server {
	return s.httpServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, technicalID) }))
}

// ServeHTTP implements http.Handler. It serves each runtime under its path and removes the path prefix from the request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, _ := strings.CutPrefix(r.URL.Path, pathPrefix)
	technicalID, _, _ := strings.Cut(path, "/")
	http.StripPrefix(pathPrefix+technicalID, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, technicalID)
	})).ServeHTTP(w, r)
}

// serve authenticates a request and passes it to the API server of the runtime, which authorizes it. If the runtime is not
// started, it returns 404. It holds the lock only for the lookup, so a watch does not delay Start and Stop.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, technicalID string) {
	s.mu.RLock()
	runtime := s.runtimes[technicalID]
	s.mu.RUnlock()
	if runtime == nil {
		kubeapi.Refuse(w, kubeapi.NotServed("no runtime is served at this path"))
		return
	}
	user, err := s.authenticate(r, runtime)
	if err != nil {
		kubeapi.Refuse(w, err)
		return
	}
	runtime.api.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
}

// httpServer returns an HTTP server with the TLS settings that all runtimes share. It logs errors at debug level, because most of
// them are caused by clients that abort a handshake. It has no write timeout, because a watch has no time limit.
func (s *Server) httpServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		TLSConfig:         s.tls.Clone(),
		ReadHeaderTimeout: headerTimeout,
		ErrorLog:          log.New(debugWriter{s.log}, "", 0),
	}
}

// Close closes the listener. Call it only if Serve is never called: Serve closes the listener itself.
func (s *Server) Close() error { return s.listener.Close() }

// debugWriter logs the errors of net/http at debug level.
type debugWriter struct {
	log logrus.FieldLogger
}

// Write implements io.Writer.
func (w debugWriter) Write(line []byte) (int, error) {
	w.log.WithField("server", "runtimes").Debug(string(line))
	return len(line), nil
}
