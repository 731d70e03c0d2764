// Package serving runs HTTP servers with the limits that every server here has.
package serving

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	// writeTimeout is longer than the longest answer: a long poll of half a minute.
	writeTimeout = time.Minute
	idleTimeout  = 2 * time.Minute
	// shutdownTimeout is how long answers under way are waited for.
	shutdownTimeout = 10 * time.Second
	maxHeaderBytes  = 64 << 10
)

// Server is an HTTP server whose address is bound already.
type Server struct {
	listener net.Listener
	server   *http.Server
}

// Listen binds the address; port 0 takes a free one. The server answers once Run is called.
func Listen(ctx context.Context, address string, handler http.Handler) (*Server, error) {
	var config net.ListenConfig

	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}

	return &Server{listener: listener, server: &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}}, nil
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

// Run answers requests until the context ends, and then waits for the answers under way.
func (s *Server) Run(ctx context.Context) error {
	// Requests get a context that ends with the server, so a long poll does not hold up the stop.
	requests, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()

	s.server.BaseContext = func(net.Listener) context.Context { return requests }

	stopped := make(chan error, 1)

	go func() {
		<-ctx.Done()

		deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()

		time.AfterFunc(shutdownTimeout/2, end)

		stopped <- s.server.Shutdown(deadline)
	}()

	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", s.Address(), err)
	}

	if err := <-stopped; err != nil {
		return fmt.Errorf("stopping %s: %w", s.Address(), err)
	}

	return nil
}
