package httpserver

import (
	"context"
	"net"
	"net/http"
)

// leaving is the key of the channel in the context of requests.
type leaving struct{}

// Draining is closed when the server that got the request of this context is told to stop. Whoever holds a request open answers then:
// the client goes on elsewhere. Without a server it is nil, which is never closed.
func Draining(ctx context.Context) <-chan struct{} {
	told, _ := ctx.Value(leaving{}).(<-chan struct{})

	return told
}

// closeOnDrain tells clients of a server that leaves to come back on another connection, and so to another replica.
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

// note keeps the connections on which there was no request yet. Those are not idle to a http.Server before five seconds have passed.
func (s *Server) note(connection net.Conn, state http.ConnState) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if state == http.StateNew {
		s.unused[connection] = struct{}{}
	} else {
		delete(s.unused, connection)
	}
}

// closeUnused closes the connections on which there was no request yet.
func (s *Server) closeUnused() {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	for connection := range s.unused {
		_ = connection.Close() // the other end may have closed it
	}
}
