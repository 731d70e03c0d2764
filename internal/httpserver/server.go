package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/logging"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	// readHeaderTimeout is the time within which a client must send the header of a request. readTimeout is the time for the
	// whole request.
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	// writeTimeout limits the time from the header of a request to the end of its response. The longest requests, which use the
	// operator API, take up to 40 seconds. Event streams set their own deadlines.
	writeTimeout = time.Minute
	// idleTimeout is the time after which an idle connection is closed.
	idleTimeout = 2 * time.Minute
	// shutdownTimeout is the time within which a stopping server must complete the requests in progress.
	shutdownTimeout = 10 * time.Second
	// unusedTimeout is how long a stopping server waits for the first request on a new connection.
	unusedTimeout = 500 * time.Millisecond
	// maxHeaderBytes limits the header of a request. Tokens and the identities that platforms send need a few KiB.
	maxHeaderBytes = 64 << 10
)

// Server is an HTTP server that is bound to an address. Run serves requests; Close is for a server that never runs.
type Server struct {
	listener net.Listener
	server   *http.Server
	// delay is the time for which the server continues to accept connections after the context of Run has ended.
	delay time.Duration

	mutex sync.Mutex
	// unused contains the connections that have not sent a request yet.
	unused map[net.Conn]struct{}
}

// Listen binds the address; port 0 selects a free port. After the context of Run has ended, the server continues to accept
// connections for the delay, which gives load balancers time to notice that the replica is not ready.
func Listen(ctx context.Context, address string, handler http.Handler, delay time.Duration) (*Server, error) {
	var config net.ListenConfig

	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}

	server := &Server{listener: listener, delay: delay, unused: map[net.Conn]struct{}{}}
	server.server = &http.Server{
		Handler:           closeOnDrain(handler),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         server.trackUnused,
	}

	return server, nil
}

// UseTLS enables TLS and HTTP/2; a nil configuration means plain HTTP. Failed handshakes and other connection errors are logged
// at level info, because clients cause them. Call UseTLS before Run.
func (s *Server) UseTLS(config *tls.Config, log logrus.FieldLogger) {
	s.server.TLSConfig = config
	s.server.ErrorLog = stdlog.New(logWriter{log.WithField(logging.Library, "net/http")}, "", 0)
}

// logWriter is an io.Writer that passes the log lines of net/http to a logger. The logger of net/http calls Write once per line.
type logWriter struct{ log logrus.FieldLogger }

// Write implements io.Writer.
func (l logWriter) Write(line []byte) (int, error) {
	l.log.Info(strings.TrimSpace(string(line)))

	return len(line), nil
}

// Address returns the host and port that the server is bound to. The port is never 0.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close releases the address of a server that never runs.
func (s *Server) Close() error {
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing %s: %w", s.Address(), err)
	}

	return nil
}

// Run serves requests until the context ends and the delay has passed, and then completes the requests in progress. The end of
// the context does not cancel these requests: their contexts end five seconds after the shutdown starts. Run returns an error if
// requests are still in progress after shutdownTimeout. A server can run only once.
func (s *Server) Run(ctx context.Context) error {
	requests, end := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), drainingKey{}, ctx.Done()))
	defer end()

	s.server.BaseContext = func(net.Listener) context.Context { return requests }

	stopped := make(chan error, 1)

	go func() {
		<-ctx.Done()

		if s.delay > 0 {
			<-time.After(s.delay)
		}

		stopped <- s.shutdown(context.WithoutCancel(ctx), end)
	}()

	if err := s.serve(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", s.Address(), err)
	}

	return failure.While(<-stopped, "stopping %s", s.Address())
}

// serve accepts connections until the listener is closed.
func (s *Server) serve() error {
	if s.server.TLSConfig != nil {
		return s.server.ServeTLS(s.listener, "", "")
	}

	return s.server.Serve(s.listener)
}

// shutdown closes the listener, and closes each connection when it becomes idle. After half of shutdownTimeout, it cancels the
// contexts of the remaining requests. The second half gives their handlers time to send error responses.
func (s *Server) shutdown(ctx context.Context, end context.CancelFunc) error {
	deadline, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()

	defer time.AfterFunc(unusedTimeout, s.closeUnused).Stop()
	defer time.AfterFunc(shutdownTimeout/2, end).Stop()

	if err := s.server.Shutdown(deadline); err != nil {
		return errors.Join(err, s.server.Close())
	}

	return nil
}

type drainingKey struct{}

// Draining returns a channel that is closed when the server of the request starts to stop. Long polls should then respond, so
// their clients can continue with another replica. If the context does not belong to a request of a Server, Draining returns a
// nil channel, which blocks forever.
func Draining(ctx context.Context) <-chan struct{} {
	draining, _ := ctx.Value(drainingKey{}).(<-chan struct{})

	return draining
}

// closeOnDrain makes a stopping server close each connection after the next response. Otherwise, clients with open connections
// would continue to use the replica until the end of the delay.
func closeOnDrain(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-Draining(r.Context()):
			w.Header().Set("Connection", "close")
		default:
		}

		handler.ServeHTTP(w, r)
	})
}

// trackUnused records connections that have not sent a request yet. http.Server.Shutdown treats such connections as busy for five
// seconds. This would delay every stop, because load balancers open connections in advance.
func (s *Server) trackUnused(connection net.Conn, state http.ConnState) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if state == http.StateNew {
		s.unused[connection] = struct{}{}
	} else {
		delete(s.unused, connection)
	}
}

// closeUnused closes all connections that have not sent a request yet.
func (s *Server) closeUnused() {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	for connection := range s.unused {
		_ = connection.Close() // the client may have closed it
	}
}
