package events_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/events"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// log has the stores of a database, and accepts operations.
type log struct {
	*testing.T

	db         *storage.DB
	operations *operations.Store
	store      *eventlog.Store
}

func openLog(t *testing.T, db *storage.DB) log {
	t.Helper()

	ops, err := operations.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	store, err := eventlog.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}

	return log{t, db, ops, store}
}

// accept adds an event of the instance.
func (l log) accept(instance, id string) {
	l.Helper()

	if err := l.db.InTx(l.Context(), func(tx storage.Tx) error {
		return l.operations.Accept(l.Context(), tx, process.New{
			ID: id, Kind: environment.KindUpdate, InstanceID: instance, Tenant: "account", Payload: []byte(`{}`), At: time.Now(),
		})
	}); err != nil {
		l.Error(err)
	}
}

// replica is a server of the log.
type replica struct {
	*httptest.Server

	publisher *events.Publisher
	streams   *events.Streams
}

// serve returns a replica. The contexts of its requests end before the streams begin, as they do after the time limit of a request.
func (l log) serve(clock clock.WithTicker, limit int) *replica {
	l.Helper()

	publisher := events.NewPublisher(l.store, clock, logging.Discard())
	served := &replica{publisher: publisher, streams: events.NewStreams(events.StreamOptions{
		Reader: l.store, Publisher: publisher, Limit: limit, Uncounted: func(wait func() error) error { return wait() },
		Clock: clock, Log: logging.Discard(),
	})}
	served.Server = httptest.NewServer(httpserver.Wrap(httpserver.Endpoint(func(r *http.Request) (httpserver.Response, error) {
		after, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
		if err != nil {
			after = -1
		}

		ctx, end := context.WithCancel(r.Context())
		defer end() // as the time limit does

		return served.streams.Response(ctx, eventlog.Filter{InstanceID: r.URL.Query().Get("instance")}, after)
	}), httpserver.Deadline(time.Minute)))
	l.Cleanup(served.Close)

	return served
}

func (r *replica) publish(t *testing.T) {
	t.Helper()

	if err := r.publisher.Publish(t.Context()); err != nil {
		t.Error(err)
	}
}

// stream is a connected client.
type stream struct {
	*testing.T

	response *http.Response
	lines    *bufio.Scanner
}

func (r *replica) open(t *testing.T, query, last string) stream {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}

	request.Header.Set("Last-Event-ID", last)

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = response.Body.Close() })

	return stream{t, response, bufio.NewScanner(response.Body)}
}

// next returns the next message, without the JSON of an event. It is empty at the end of the stream.
func (s stream) next() string {
	s.Helper()

	var parts []string

	for s.lines.Scan() {
		if s.lines.Text() == "" {
			return strings.Join(parts, " | ")
		}

		if !strings.HasPrefix(s.lines.Text(), "data: {") {
			parts = append(parts, s.lines.Text())
		}
	}

	return ""
}

func (s stream) want(reason string, messages ...string) {
	s.Helper()

	for _, want := range messages {
		if got := s.next(); got != want {
			s.Fatalf("%s: got %q, want %q", reason, got, want)
		}
	}
}

func begin(position int) string { return fmt.Sprintf("retry: 3000 | : heartbeat | id: %d", position) }

func accepted(position int) string {
	return fmt.Sprintf("id: %d | event: operation.accepted", position)
}

func TestStream(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		l, fake := openLog(t, db), clocktesting.NewFakeClock(time.Now())
		served := l.serve(fake, 9)

		l.accept("one", "1")
		served.publish(t)

		fresh, resumed, filtered := served.open(t, "", ""), served.open(t, "", "0"), served.open(t, "?instance=two", "0")

		fresh.want("new events only", begin(1))
		resumed.want("the events after the position", begin(0), accepted(1))
		filtered.want("no matching event", begin(0))

		if got := fresh.response.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("the content type is %q", got)
		}

		l.accept("two", "2")
		served.publish(t)

		for _, each := range []stream{fresh, resumed, filtered} {
			each.want("a new event", accepted(2))
		}

		l.accept("one", "3")
		served.publish(t)
		fresh.want("another instance", accepted(3))
		resumed.want("another instance", accepted(3))

		// The stream without events moves on, so that the client does not resume at a position that may be removed.
		for fake.Step(15 * time.Second); ; fake.Step(15 * time.Second) {
			if got := filtered.next(); got == ": heartbeat | id: 3" {
				break
			} else if got != ": heartbeat | id: 2" {
				t.Fatalf("got %q", got)
			}
		}
	})
}

func TestPositionsThatAreGone(t *testing.T) {
	l := openLog(t, storagetest.SQLite(t))
	served := l.serve(clock.RealClock{}, 9)

	for number := range 3 {
		l.accept("one", strconv.Itoa(number))
	}

	served.publish(t)

	if _, err := l.store.RemoveBefore(t.Context(), time.Now().Add(time.Hour), 2); err != nil {
		t.Fatal(err)
	}

	for last, status := range map[string]int{"0": http.StatusGone, "1": http.StatusGone, "2": http.StatusOK, "3": http.StatusOK, "4": http.StatusGone, "": http.StatusOK} {
		if got := served.open(t, "", last).response.StatusCode; got != status {
			t.Errorf("position %q: status %d, want %d", last, got, status)
		}
	}
}

// overtaken is a log whose retention removes events before the next read.
type overtaken struct {
	*eventlog.Store

	remove int
}

func (o *overtaken) Read(ctx context.Context, filter eventlog.Filter, after int64, limit int) ([]eventlog.Event, int64, error) {
	if o.remove > 0 {
		if _, err := o.RemoveBefore(ctx, time.Now().Add(time.Hour), o.remove); err != nil {
			return nil, 0, err
		}
	}

	return o.Store.Read(ctx, filter, after, limit)
}

// TestStreamOvertakenByRetention removes events after a stream has begun and before it has read them. The stream ends, so that the client
// resumes and learns that it has missed events.
func TestStreamOvertakenByRetention(t *testing.T) {
	for name, removed := range map[string]int{"Some": 2, "All": 3} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, storagetest.SQLite(t))
			served := l.serve(clocktesting.NewFakeClock(time.Now()), 9)
			reader := &overtaken{Store: l.store, remove: removed}
			served.streams.Reader = reader

			for number := range 3 {
				l.accept("one", strconv.Itoa(number))
			}

			served.publish(t)
			served.open(t, "", "0").want("the end of the stream", begin(0), "")

			if got := served.open(t, "", "0").response.StatusCode; got != http.StatusGone {
				t.Errorf("status %d for the position of the client, want 410", got)
			}
		})
	}
}

func TestLimitOfStreams(t *testing.T) {
	l := openLog(t, storagetest.SQLite(t))
	served := l.serve(clock.RealClock{}, 1)
	first := served.open(t, "", "")
	first.want("the first client", begin(0))

	refused := served.open(t, "", "")
	if got := refused.response; got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") != "10" {
		t.Errorf("got status %d, Retry-After %s", got.StatusCode, got.Header.Get("Retry-After"))
	}

	served.CloseClientConnections()

	for {
		if next := served.open(t, "", ""); next.response.StatusCode == http.StatusOK {
			return
		}
	}
}

// TestStopOfTheServer stops a server with a stream, which resumes at another replica.
func TestStopOfTheServer(t *testing.T) {
	l := openLog(t, storagetest.SQLite(t))
	streams := l.serve(clock.RealClock{}, 9).streams

	server, err := httpserver.Listen(t.Context(), "127.0.0.1:0", httpserver.Endpoint(func(r *http.Request) (httpserver.Response, error) {
		return streams.Response(r.Context(), eventlog.Filter{}, -1)
	}), time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())

	go func() { _ = server.Run(ctx) }()

	stopping := &replica{Server: &httptest.Server{URL: "http://" + server.Address()}}
	client := stopping.open(t, "", "")
	client.want("a stream", begin(0))
	stop()
	client.want("the stream ends before the delay of the server", "")
}

// TestSlowClient fills the buffers of a connection that nobody reads. The other client is not delayed.
func TestSlowClient(t *testing.T) {
	l := openLog(t, storagetest.SQLite(t))
	blocked := make(chan struct{})

	writer := &slowWriter{header: http.Header{}, blocked: blocked}
	served := l.serve(clock.RealClock{}, 9)

	response, err := served.streams.Response(t.Context(), eventlog.Filter{}, -1)
	if err != nil {
		t.Fatal(err)
	}

	ended := make(chan struct{})

	go func() {
		response.Stream(writer)
		close(ended)
	}()

	<-blocked

	other := served.open(t, "", "")
	other.want("a stream", begin(0))
	l.accept("one", "1")
	served.publish(t)
	other.want("an event", accepted(1))

	if limit := writer.deadline(); limit <= 0 || limit > 10*time.Second {
		t.Errorf("a write may last %s", limit)
	}

	writer.fail()
	<-ended
}

// slowWriter is a connection whose client does not read.
type slowWriter struct {
	header  http.Header
	blocked chan struct{}

	mutex  sync.Mutex
	limit  time.Time
	failed chan struct{}
}

func (w *slowWriter) Header() http.Header             { return w.header }
func (w *slowWriter) WriteHeader(int)                 {}
func (w *slowWriter) Flush()                          {}
func (w *slowWriter) SetReadDeadline(time.Time) error { return nil }

func (w *slowWriter) SetWriteDeadline(limit time.Time) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	w.limit, w.failed = limit, make(chan struct{})

	return nil
}

func (w *slowWriter) Write([]byte) (int, error) {
	close(w.blocked)
	<-w.failed

	return 0, errors.New("the deadline has passed")
}

func (w *slowWriter) deadline() time.Duration {
	w.mutex.Lock()
	defer w.mutex.Unlock()

	return time.Until(w.limit)
}

func (w *slowWriter) fail() { close(w.failed) }

// TestTwoReplicas follows the events of concurrent transactions. The client changes between two replicas, and breaks its connection again
// and again. It gets each event once, and events of an instance in the order of their acceptance.
func TestTwoReplicas(t *testing.T) {
	const (
		writers = 4
		each    = 50
	)

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		l := openLog(t, db)
		replicas := []*replica{l.serve(clock.RealClock{}, 9), l.serve(clock.RealClock{}, 9)}

		var group sync.WaitGroup

		publishing, stop := context.WithCancel(t.Context())

		for writer := range writers {
			group.Go(func() {
				for number := range each {
					l.accept(strconv.Itoa(writer), fmt.Sprintf("%d-%d", writer, number))
				}
			})
		}

		for _, each := range replicas {
			group.Go(func() {
				for publishing.Err() == nil {
					each.publish(t)
				}
			})
		}

		position, connection := 0, 0

		for position < writers*each {
			client := replicas[connection%2].open(t, "", strconv.Itoa(position))
			client.want("a resumed stream", begin(position))

			for range min(1+connection%7, writers*each-position) {
				position++
				client.want("the next event", accepted(position))
			}

			connection++

			_ = client.response.Body.Close()
		}

		stop()
		group.Wait()

		log, _, err := l.store.Read(t.Context(), eventlog.Filter{}, 0, writers*each+1)
		if err != nil || len(log) != writers*each {
			t.Fatalf("%d events, %v", len(log), err)
		}

		seen := map[string]int{}
		for _, event := range log {
			if want := fmt.Sprintf("%s-%d", event.InstanceID, seen[event.InstanceID]); event.OperationID != want {
				t.Errorf("got %s, want %s", event.OperationID, want)
			}

			seen[event.InstanceID]++
		}
	})
}

var _ io.Writer = (*slowWriter)(nil)
