package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instances"
)

const (
	// lookEvery is the interval at which a stream looks for changes while few clients watch pages.
	lookEvery = 250 * time.Millisecond
	// refreshBudget is the number of page refreshes that a replica serves per second. With more viewers, each page refreshes less
	// often.
	refreshBudget = 20
	// maxViewers is the maximum number of streams on a replica.
	maxViewers = 1000
	// heartbeatEvery is the interval between heartbeats. They keep proxies from closing a stream without changes.
	heartbeatEvery = 15 * time.Second
	// readTimeout is the time limit for reading the current state when a stream looks for changes.
	readTimeout = 10 * time.Second
)

// Live contains the dependencies of live updates.
type Live struct {
	// Position returns the position of the newest event. It must be cheap, because each stream calls it up to four times a second.
	Position func() int64
	// Read reads events; see eventlog.Store.
	Read func(ctx context.Context, filter eventlog.Filter, after int64, limit int) ([]eventlog.Event, int64, error)
	// Uncounted calls a long-running function. While the function runs, its request does not count as load.
	Uncounted func(wait func() error) error
	// Expires returns when the session of a client ends, or the zero time if it does not end.
	Expires func(ctx context.Context) time.Time
	Clock   clock.WithTicker
}

// shownParameter is the query parameter of a stream's URL that contains the digest of the state that the page shows.
const shownParameter = "shown"

// address returns the URL of the stream that refreshes a page. topic is instance, operation, orchestration or overview; if it is
// empty, the stream reports every event. The result is empty if live updates are off. It is also empty if the page has sent the request to
// refresh itself, because the page then already has a stream. Call address before reading the data of the page: the URL contains
// the digest of the current state, so that the stream also reports changes that happen before it is connected.
func (c *console) address(r *http.Request, topic, id string) string {
	if c.Live.Position == nil || r.Header.Get(liveHeader) != "" {
		return ""
	}

	query := url.Values{}
	if topic != "" {
		query.Set(topic, id)
	}

	if state, err := c.stateOf(query)(r.Context()); err == nil {
		query.Set(shownParameter, digest(state))
	}

	return "/console/live?" + query.Encode()
}

// digest returns a short hash of a state.
func digest(state string) string {
	sum := sha256.Sum256([]byte(state))

	return hex.EncodeToString(sum[:8])
}

// viewers counts the streams of this replica.
type viewers struct{ count atomic.Int64 }

// interval returns the time between two checks of a stream. It grows with the number of streams, so that all of them together cause
// at most refreshBudget refreshes per second.
func (v *viewers) interval() time.Duration {
	return max(lookEvery, time.Duration(v.count.Load())*time.Second/refreshBudget)
}

// live serves a stream that sends an event whenever the watched instance, operation or orchestration has changed, or on any event
// if the URL names no object. The browser then requests its page again. The events have no content, so there is only one way to
// render a page.
func (c *console) live(r *http.Request) (result, error) {
	if c.Live.Position == nil {
		return result{}, httpserver.Refuse(http.StatusNotFound, textNoPage)
	}

	if c.viewers.count.Add(1) > maxViewers {
		c.viewers.count.Add(-1)

		return result{}, &httpserver.Refusal{
			Status: http.StatusServiceUnavailable, Description: "This replica already serves the maximum number of live pages.", RetryAfter: heartbeatEvery,
		}
	}

	query := r.URL.Query()
	state, shown := c.stateOf(query), query.Get(shownParameter)

	return result{stream: func(w http.ResponseWriter) {
		defer c.viewers.count.Add(-1)

		if err := c.Live.Uncounted(func() error { return c.follow(r.Context(), w, state, shown) }); err != nil {
			c.API.Log.WithError(err).Debug("a console stream has ended")
		}
	}}, nil
}

// follow sends an event each time the state has changed, until the client disconnects, its session ends or the server stops.
// Browsers then reconnect. shown is the digest of the state that the client shows, or empty if it is unknown.
func (c *console) follow(request context.Context, w http.ResponseWriter, state func(context.Context) (string, error), shown string) error {
	ctx, cancel := context.WithCancel(httpserver.Connection(request))
	defer cancel()

	if expires := c.Live.Expires(request); !expires.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, expires)
		defer cancel()
	}

	stream, err := httpserver.StartEventStream(w)
	if err != nil {
		return err
	}

	if err := stream.Write([]byte("retry: 3000\n: connected\n\n")); err != nil {
		return err
	}

	for written := c.Live.Clock.Now(); ; {
		limited, stop := context.WithTimeout(ctx, readTimeout)
		current, err := state(limited)
		now := digest(current)

		stop()

		switch {
		case err != nil && ctx.Err() == nil:
			return err
		case ctx.Err() != nil:
			return nil
		case shown != "" && now != shown:
			err = stream.Write([]byte("event: change\ndata:\n\n"))
			written = c.Live.Clock.Now()
		case c.Live.Clock.Since(written) >= heartbeatEvery:
			err = stream.Write([]byte(": heartbeat\n\n"))
			written = c.Live.Clock.Now()
		}

		if err != nil {
			return err
		}

		shown = now

		select {
		case <-c.Live.Clock.After(c.viewers.interval()):
		case <-httpserver.Draining(request):
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// stateOf returns a function that describes the state that a page shows, as a string. The string stays the same until the state
// changes.
func (c *console) stateOf(query url.Values) func(context.Context) (string, error) {
	switch {
	case query.Get("operation") != "":
		return func(ctx context.Context) (string, error) { return c.operationState(ctx, query.Get("operation")) }
	case query.Get("orchestration") != "":
		return func(ctx context.Context) (string, error) {
			return c.orchestrationState(ctx, query.Get("orchestration"))
		}
	case query.Get("instance") != "":
		return func(ctx context.Context) (string, error) { return c.instanceState(ctx, query.Get("instance")) }
	case query.Get(overviewTopic) != "":
		return func(context.Context) (string, error) { return c.overviewState(), nil }
	default:
		return func(context.Context) (string, error) { return strconv.FormatInt(c.Live.Position(), 10), nil }
	}
}

// overviewTopic is the topic of the stream of the overview.
const overviewTopic = "overview"

// overviewState returns a string that changes with each event, and whenever a replica reads the numbers of the overview again: a refresh
// after an event may still show older numbers. Some changes, such as the failure of a system, cause no event.
func (c *console) overviewState() string {
	return fmt.Sprint(c.Live.Position(), c.Live.Clock.Now().Truncate(overviewLifetime).Unix())
}

func (c *console) operationState(ctx context.Context, id string) (string, error) {
	record, err := c.API.Operations.Get(ctx, c.API.DB.Reader(), id)

	return fmt.Sprint(record.State, record.UpdatedAt.UnixNano(), record.Stage, record.Step, record.StepBegan.UnixNano(), record.Lease.Owner), err
}

// orchestrationState returns a string that changes with the state of an orchestration or of its targets. Upgrades of targets
// cause events, so the string contains the position of the newest event. Targets that are canceled or left out before they start
// cause no events, but they change the counts in the orchestration's description.
func (c *console) orchestrationState(ctx context.Context, id string) (string, error) {
	position := c.Live.Position()
	found, err := c.API.Orchestrations.Get(ctx, c.API.DB.Reader(), id)

	return fmt.Sprint(position, found.State, found.Wave, found.UpdatedAt.UnixNano(), found.Description), err
}

// instanceState returns a string that changes with the state of an instance, its newest operation or its bindings. For a deleted
// instance, the string is "gone".
func (c *console) instanceState(ctx context.Context, id string) (string, error) {
	listed, err := c.API.Instances.List(ctx, instances.Filter{InstanceID: id, Limit: 1})
	if err != nil || len(listed) == 0 {
		return "gone", err
	}

	events, _, err := c.Live.Read(ctx, eventlog.Filter{InstanceID: id}, c.Live.Position()-recentEvents, recentEvents)
	newest := listed[0].Operation

	var last int64
	if len(events) > 0 {
		last = events[len(events)-1].Position
	}

	return fmt.Sprint(listed[0].Instance.UpdatedAt.UnixNano(), newest.ID, newest.State, newest.UpdatedAt.UnixNano(), newest.Stage, last), err
}

// recentEvents is the number of newest events among which instanceState looks for events of the instance and its bindings.
const recentEvents = 100
