package httpserver

import (
	"fmt"
	"net/http"
	"time"
)

// streamWriteTimeout limits each write to a stream. A client that reads more slowly is disconnected.
const streamWriteTimeout = 10 * time.Second

// EventStream is a response that consists of server-sent events.
type EventStream struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

// StartEventStream writes the header of an event stream. The server's timeouts do not limit the response: there is no read deadline,
// and each Write sets its own deadline.
func StartEventStream(w http.ResponseWriter) (*EventStream, error) {
	stream := &EventStream{w, http.NewResponseController(w)}

	// Without this call, the read timeout of the server would end the connection.
	if err := stream.controller.SetReadDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("removing the read deadline of the connection: %w", err)
	}

	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // asks proxies not to buffer events
	w.WriteHeader(http.StatusOK)

	return stream, nil
}

// Write sends the text immediately. It fails if the client does not read the text within streamWriteTimeout.
func (s *EventStream) Write(text []byte) error {
	if err := s.controller.SetWriteDeadline(time.Now().Add(streamWriteTimeout)); err != nil {
		return fmt.Errorf("setting the write deadline: %w", err)
	}

	if _, err := s.w.Write(text); err != nil {
		return fmt.Errorf("writing events: %w", err)
	}

	if err := s.controller.Flush(); err != nil {
		return fmt.Errorf("writing events: %w", err)
	}

	return nil
}
