package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/storage/eventlog"
)

const (
	// heartbeatEvery is the interval of heartbeats, which show proxies that a stream is alive. They carry the position up to
	// which the log was examined.
	heartbeatEvery = 15 * time.Second
	// readTimeout bounds each query.
	readTimeout = 10 * time.Second
	// pageSize is the maximum number of events that one query returns.
	pageSize = 100
	// retryMillis is the time in milliseconds after which clients reconnect.
	retryMillis = 3000
	// busyRetry is the time after which clients may retry a replica that already serves the maximum number of streams.
	busyRetry = 10 * time.Second
)

// Reader reads the log. eventlog.Store implements it.
type Reader interface {
	Read(ctx context.Context, filter eventlog.Filter, after int64, limit int) ([]eventlog.Event, int64, error)
	Head(ctx context.Context) (eventlog.Head, error)
}

// StreamOptions are the dependencies of Streams. All fields are required.
type StreamOptions struct {
	Reader    Reader
	Publisher *Publisher
	// Limit is the maximum number of streams of this replica.
	Limit int
	// Uncounted calls a long-running function, and does not count its request as load while the function runs.
	Uncounted func(wait func() error) error
	// PublicURL is the broker's public URL, which CloudEvents contain as their source.
	PublicURL string
	Clock     clock.WithTicker
	Log       logrus.FieldLogger
}

// Streams serves events as server-sent events. It is safe for concurrent use.
type Streams struct {
	StreamOptions

	active atomic.Int64
}

// NewStreams returns Streams without clients.
func NewStreams(options StreamOptions) *Streams { return &Streams{StreamOptions: options} }

// Metric returns a collector for the number of streams.
func (s *Streams) Metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "environment_broker_event_streams",
		Help: "Clients that receive server-sent events from this replica.",
	}, func() float64 { return float64(s.active.Load()) })
}

// Check returns an error unless the log still contains all events after the given position.
func Check(head eventlog.Head, after int64) error {
	switch {
	case after < head.Removed:
		return httpserver.Refuse(http.StatusGone, fmt.Sprintf(
			"Events after position %d have been removed. Read the current state of the instances, and then follow the events after position %d.", after, head.Removed))
	case after > head.Position:
		return httpserver.Refuse(http.StatusGone, fmt.Sprintf(
			"Position %d does not exist: the database may have been restored. Read the current state of the instances, and then follow the events after position %d.",
			after, head.Position))
	default:
		return nil
	}
}

// Read returns the next events like Reader.Read. It returns the error of Check if events after the position were removed before or
// during the read, because the result may then lack them.
func Read(ctx context.Context, reader Reader, filter eventlog.Filter, after int64, limit int) ([]eventlog.Event, int64, error) {
	found, last, err := reader.Read(ctx, filter, after, limit)
	if err != nil {
		return nil, after, err
	}

	head, err := reader.Head(ctx)
	if err == nil {
		err = Check(head, after)
	}

	return found, last, err
}

// Response returns a stream of the events that match the filter and come after the given position. If after is negative, the
// stream starts with new events. ctx is the context of the request.
func (s *Streams) Response(ctx context.Context, filter eventlog.Filter, after int64) (httpserver.Response, error) {
	head, err := s.Reader.Head(ctx)
	if err != nil {
		return httpserver.Response{}, err
	}

	if after < 0 {
		after = head.Position
	}

	if err := Check(head, after); err != nil {
		return httpserver.Response{}, err
	}

	if s.active.Add(1) > int64(s.Limit) {
		s.active.Add(-1)

		refusal := httpserver.Refuse(http.StatusServiceUnavailable, "This replica already serves its maximum number of streams.")
		refusal.RetryAfter = busyRetry

		return httpserver.Response{}, refusal
	}

	return httpserver.Response{Stream: func(w http.ResponseWriter) {
		defer s.active.Add(-1)

		if err := s.Uncounted(func() error {
			return newStream(s, w, filter, after).run(httpserver.Connection(ctx), httpserver.Draining(ctx))
		}); err != nil {
			s.Log.WithError(err).Debug("a stream of events has ended")
		}
	}}, nil
}

// stream is the response to one client.
type stream struct {
	*Streams

	w      http.ResponseWriter
	events *httpserver.EventStream
	filter eventlog.Filter
	// position is the position up to which the log was examined.
	position int64
}

func newStream(streams *Streams, w http.ResponseWriter, filter eventlog.Filter, after int64) *stream {
	return &stream{Streams: streams, w: w, filter: filter, position: after}
}

// run writes events until the client disconnects or the server stops. The client can then resume with any replica.
func (s *stream) run(ctx context.Context, draining <-chan struct{}) error {
	var err error
	if s.events, err = httpserver.StartEventStream(s.w); err != nil {
		return err
	}

	if err := s.write(fmt.Appendf(nil, "retry: %d\n%s", retryMillis, s.heartbeat())); err != nil {
		return err
	}

	ticker := s.Clock.NewTicker(heartbeatEvery)
	defer ticker.Stop()

	for {
		grown := s.Publisher.Grown() // call this before reading the log, so that no event in between is missed

		if err := s.catchUp(ctx, draining); err != nil {
			return err
		}

		select {
		case <-grown:
		case <-ticker.C():
			if err := s.write(s.heartbeat()); err != nil {
				return err
			}
		case <-draining:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// catchUp writes all events up to the end of the log. If the retention has removed some of them, it returns an error. The client then
// resumes at its last position and learns that it has missed events.
func (s *stream) catchUp(ctx context.Context, draining <-chan struct{}) error {
	for {
		events, last, err := s.read(ctx)
		if err != nil || last == s.position {
			return err
		}

		var page bytes.Buffer

		for _, event := range events {
			encoded, err := json.Marshal(CloudEvent(event, s.PublicURL))
			if err != nil {
				return failure.While(err, "encoding event %s", event.ID)
			}

			fmt.Fprintf(&page, "id: %d\nevent: %s\ndata: %s\n\n", event.Position, event.Type, encoded)
		}

		s.position = last

		if page.Len() > 0 {
			if err := s.write(page.Bytes()); err != nil {
				return err
			}
		}

		select {
		case <-draining:
			return nil
		default:
		}
	}
}

func (s *stream) read(ctx context.Context) ([]eventlog.Event, int64, error) {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()

	return Read(limited, s.Reader, s.filter, s.position, pageSize)
}

// heartbeat returns a message without data: clients store its position, but do not report an event.
func (s *stream) heartbeat() []byte { return fmt.Appendf(nil, ": heartbeat\nid: %d\n\n", s.position) }

// write sends the text immediately. A client that is disconnected resumes after the last event that it has read.
func (s *stream) write(text []byte) error { return s.events.Write(text) }
