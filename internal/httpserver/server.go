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
)

const (
	// readHeaderTimeout and readTimeout bound how long a slow client may take for the header and for the whole request.
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	// writeTimeout exceeds the longest response, a long poll of half a minute.
	writeTimeout = time.Minute
	// idleTimeout is how long a connection without a request stays open.
	idleTimeout = 2 * time.Minute
	// shutdownTimeout bounds how long a stopping server waits for requests in progress.
	shutdownTimeout = 10 * time.Second
	// unusedTimeout bounds how long a stopping server waits for the first request of a new connection.
	unusedTimeout = 500 * time.Millisecond
	// maxHeaderBytes leaves room for tokens and for the contexts of platforms.
	maxHeaderBytes = 64 << 10
)

// Server is an HTTP server with a bound address.
type Server struct {
	listener net.Listener
	server   *http.Server
	// delay is the time between the request to stop and the end of the listener.
	delay time.Duration

	mutex sync.Mutex
	// unused holds the connections without a request so far.
	unused map[net.Conn]struct{}
}

// Listen binds the address; port 0 selects a free one. The server handles requests once Run is called, and for the delay after its stop, until
// load balancers have noticed.
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

// UseTLS makes the server speak TLS and HTTP/2, and logs failed handshakes. A nil configuration means plain HTTP. Call it before Run.
func (s *Server) UseTLS(config *tls.Config, log logrus.FieldLogger) {
	s.server.TLSConfig = config
	s.server.ErrorLog = stdlog.New(logWriter{log}, "", 0)
}

// logWriter logs each line that is written to it.
type logWriter struct{ log logrus.FieldLogger }

// Write implements io.Writer.
func (l logWriter) Write(line []byte) (int, error) {
	l.log.Info(strings.TrimSpace(string(line)))

	return len(line), nil
}

// Address returns the host and port that the server is bound to.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close releases the address of a server that does not run.
func (s *Server) Close() error {
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing %s: %w", s.Address(), err)
	}

	return nil
}

// Run handles requests until the context ends and the delay has passed, then waits for the requests in progress. Their contexts end later than
// that of Run, so that they can finish. It returns an error if requests had to be interrupted after shutdownTimeout. A server runs once.
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

	if err := <-stopped; err != nil {
		return fmt.Errorf("stopping %s: %w", s.Address(), err)
	}

	return nil
}

func (s *Server) serve() error {
	if s.server.TLSConfig != nil {
		return s.server.ServeTLS(s.listener, "", "")
	}

	return s.server.Serve(s.listener)
}

// shutdown closes the listener, and each connection when it becomes idle. After half of the timeout it cancels the contexts of the remaining
// requests, so that they still have time to respond.
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

// Draining returns a channel that is closed when the server of the context's request starts to stop. A long poll responds then, so that the
// client continues with another replica. Outside of a server it returns nil, which never closes.
func Draining(ctx context.Context) <-chan struct{} {
	draining, _ := ctx.Value(drainingKey{}).(<-chan struct{})

	return draining
}

// closeOnDrain closes connections of a stopping server after a response, so that clients reconnect to another replica.
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

// trackUnused keeps the connections without a request so far. An http.Server treats them as busy for five seconds.
func (s *Server) trackUnused(connection net.Conn, state http.ConnState) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if state == http.StateNew {
		s.unused[connection] = struct{}{}
	} else {
		delete(s.unused, connection)
	}
}

// closeUnused closes the connections without a request so far.
func (s *Server) closeUnused() {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	for connection := range s.unused {
		_ = connection.Close() // the client may have closed it
	}
}
