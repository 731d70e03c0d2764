package httpserver

import (
	"fmt"
	"net/http"
	"time"
)

// streamWriteTimeout bounds each write to a stream. A client that reads more slowly is disconnected.
const streamWriteTimeout = 10 * time.Second

// EventStream is a response of server-sent events.
type EventStream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

// StartEventStream writes the header of a response of server-sent events. The response may last longer than the server's limits.
func StartEventStream(w http.ResponseWriter) (*EventStream, error) {
	stream := &EventStream{w, http.NewResponseController(w)}

	// The server's limit for reading a request would end the connection.
	if err := stream.controller.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("removing the limit of the connection: %w", err)
	}

	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // asks proxies not to collect events
	w.WriteHeader(http.StatusOK)

	return stream, nil
}

// Write sends the text at once. It fails if the client does not accept it in time.
func (s *EventStream) Write(text []byte) error {
	if err := s.controller.SetWriteDeadline(time.Now().Add(streamWriteTimeout)); err != nil {
		return fmt.Errorf("limiting the time of a write: %w", err)
	}

	if _, err := s.w.Write(text); err != nil {
		return fmt.Errorf("writing events: %w", err)
	}

	if err := s.controller.Flush(); err != nil {
		return fmt.Errorf("writing events: %w", err)
	}

	return nil
}
