// Package httpserver runs HTTP servers with the limits that every server here has.
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
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	// writeTimeout is longer than the longest answer: a long poll of half a minute.
	writeTimeout = time.Minute
	idleTimeout  = 2 * time.Minute
	// shutdownTimeout is how long answers under way are waited for.
	shutdownTimeout = 10 * time.Second
	// unusedTimeout is how long a connection may then still be silent on which there was no request yet.
	unusedTimeout  = 500 * time.Millisecond
	maxHeaderBytes = 64 << 10
)

// Server is an HTTP server whose address is bound already.
type Server struct {
	listener net.Listener
	server   *http.Server
	delay    time.Duration

	mutex  sync.Mutex
	unused map[net.Conn]struct{}
}

// Listen binds the address; port 0 takes a free one. The server answers once Run is called, and for the delay after it was told to
// stop: load balancers take a moment to see that it leaves.
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
		ConnState:         server.note,
	}

	return server, nil
}

// Secure has the server speak TLS, and HTTP/2 over it. With what clients it could not agree goes to the log.
func (s *Server) Secure(config *tls.Config, log logrus.FieldLogger) {
	s.server.TLSConfig = config
	s.server.ErrorLog = stdlog.New(lines{log}, "", 0)
}

// lines writes each line to the log.
type lines struct{ log logrus.FieldLogger }

// Write implements io.Writer.
func (l lines) Write(line []byte) (int, error) {
	l.log.Info(strings.TrimSpace(string(line)))

	return len(line), nil
}

// Address is host and port that the server is bound to.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close gives the address back without Run.
func (s *Server) Close() error {
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing %s: %w", s.Address(), err)
	}

	return nil
}

// Run answers requests until the context ends and the delay has passed, and then waits for the answers under way.
func (s *Server) Run(ctx context.Context) error {
	requests, end := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), leaving{}, ctx.Done()))
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

// shutdown closes the listener, and each connection once nothing is under way on it. Requests that take long find their context
// ended while there is time left to answer.
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
