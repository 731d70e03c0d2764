package notify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/notify"
	"github.com/environment-broker/environment-broker/internal/clients/notification"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakenotification"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/notifications"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

const (
	timeout = 30 * time.Second
	// upgradeID is the ID of the upgrade of the instance, see storagetest.Hold.
	upgradeID = environment.KindUpgradeKyma + " of one"
)

// fixture is an event log with a simulated notification service.
type fixture struct {
	*testing.T

	db         *storage.DB
	operations *operations.Store
	events     *eventlog.Store
	store      *notifications.Store
	simulated  *fakenotification.Service
	server     *httptest.Server
	client     *notification.Client
	clock      *clocktesting.FakeClock
	metrics    *notify.Metrics
	log        *bytes.Buffer
	logger     *logrus.Logger
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	ops, err := operations.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	events, err := eventlog.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}

	store, err := notifications.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}

	f := &fixture{
		T: t, db: db, operations: ops, events: events, store: store, simulated: fakenotification.New(), clock: clocktesting.NewFakeClock(time.Now()),
		log: &bytes.Buffer{}, logger: logrus.New(),
	}
	f.logger.SetOutput(f.log)
	f.logger.SetFormatter(&logrus.JSONFormatter{})
	f.metrics = notify.NewMetrics(store, f.clock, f.logger)

	f.server = httptest.NewServer(f.simulated)
	t.Cleanup(f.server.Close)

	config := fakenotification.Config(f.server.URL)
	config.Timeout = 10 * time.Second
	f.client = notification.New(config, http.DefaultTransport)

	return f
}

// replica returns a replica that uses the given store and send function.
func (f *fixture) replica(through notify.Store, send func(context.Context, notification.Message) error) *notify.Delivery {
	return notify.New(notify.Options{
		Store: through, Events: f.events, Send: send, Timeout: timeout, Calls: 4, Metrics: f.metrics, Clock: f.clock, Log: f.logger,
	})
}

// upgrade records an upgrade of the instance that has begun.
func (f *fixture) upgrade(instanceID string) process.Record {
	f.Helper()

	record := storagetest.Hold(f.T, f.db, f.operations, environment.KindUpgradeKyma, instanceID)
	if err := f.events.StartMaintenance(f.Context(), record, f.clock.Now()); err != nil {
		f.Fatal(err)
	}

	f.publish()

	return record
}

func (f *fixture) publish() {
	f.Helper()

	if _, err := f.events.Publish(f.Context(), f.clock.Now()); err != nil {
		f.Fatal(err)
	}
}

// end ends the upgrade.
func (f *fixture) end(upgrade process.Record, state process.State) {
	f.Helper()

	upgrade.State, upgrade.FinishedAt = state, f.clock.Now()
	if _, err := f.operations.Save(f.Context(), process.Progress{Record: upgrade, Release: true, Now: f.clock.Now()}); err != nil {
		f.Fatal(err)
	}

	f.publish()
}

func (f *fixture) deliver(replica *notify.Delivery) {
	f.Helper()

	if err := replica.Deliver(f.Context()); err != nil {
		f.Error(err)
	}
}

// wantReceived compares the messages that the service has received.
func (f *fixture) wantReceived(reason, eventID string, want ...string) {
	f.Helper()

	if diff := cmp.Diff(want, f.simulated.Received()[eventID]); diff != "" {
		f.Errorf("%s: -want +got\n%s", reason, diff)
	}
}

// wantCounts compares the numbers of messages that were delivered, given up, and are pending.
func (f *fixture) wantCounts(delivered, givenUp, pending int) {
	f.Helper()

	want := fmt.Sprintf(`# HELP environment_broker_notifications_pending Messages about runtime maintenance that are not delivered yet. All replicas report the same value.
# TYPE environment_broker_notifications_pending gauge
environment_broker_notifications_pending %d
# HELP environment_broker_notifications_total Messages about runtime maintenance that this replica has sent, by result: delivered, given up (after five minutes, or because they were rejected).
# TYPE environment_broker_notifications_total counter
environment_broker_notifications_total{result="delivered"} %d
environment_broker_notifications_total{result="given up"} %d
`, pending, delivered, givenUp)

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(f.metrics)

	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"environment_broker_notifications_pending", "environment_broker_notifications_total"); err != nil {
		f.Error(err)
	}
}

func TestDelivery(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		replica := f.replica(f.store, f.client.Send)

		f.deliver(replica)

		first, second := f.upgrade("one"), f.upgrade("two")

		f.deliver(replica)
		f.wantReceived("the maintenance begins", first.ID, "create", "1")

		f.end(first, process.Succeeded)
		f.end(second, process.Canceled)
		f.deliver(replica)
		f.deliver(replica)
		f.wantReceived("a success", first.ID, "create", "1", "2")
		f.wantReceived("a cancellation", second.ID, "create", "1", "cancel")
		f.wantCounts(6, 0, 0)
	})
}

// TestFaults checks the log, the pause before a message is sent again, and the time of the last attempt. The other messages of the event
// must follow.
//
//faults:table notifications.md#delivery
func TestFaults(t *testing.T) {
	const (
		repeated = 5 * time.Second
		once     = time.Duration(0) // the message ends with the first attempt
		window   = 5 * time.Minute
		create   = "createEvent"
		update   = "updateEvent"
		rejects  = "rejects the credentials with HTTP status "
		variable = ": an operator must correct APP_NOTIFICATION_USER and APP_NOTIFICATION_PASSWORD"
	)

	cases := map[string]struct {
		fault simulator.Fault
		// retried is the pause after the first attempt.
		retried time.Duration
		// givenUp reports whether the replica gives up sending the message if the fault remains. logged is a part of the warning.
		givenUp bool
		logged  string
	}{
		"is unreachable: no connection":                       {simulator.Fault{}, repeated, true, "the notification service cannot be reached"},
		"loses the response, or the connection breaks/lost":   {simulator.Fault{Operation: create, Lost: true}, repeated, true, "the notification service cannot be reached"},
		"loses the response, or the connection breaks/broken": {simulator.Fault{Operation: create, Unsent: true}, repeated, true, "the notification service cannot be reached"},
		"is slow": {simulator.Fault{Operation: create, Delay: time.Hour}, repeated, true, "the notification service did not respond within"},
		"408, 500 and above, also 502 of a gateway/408": {simulator.Fault{Operation: create, Status: 408}, repeated, true, "HTTP status 408 Request Timeout"},
		"408, 500 and above, also 502 of a gateway/500": {simulator.Fault{Operation: create, Status: 500}, repeated, true, "HTTP status 500 Internal Server Error"},
		"408, 500 and above, also 502 of a gateway/502": {simulator.Fault{Operation: create, Status: 502}, repeated, true, "HTTP status 502 Bad Gateway"},
		"408, 500 and above, also 502 of a gateway/503": {simulator.Fault{Operation: create, Status: 503}, repeated, true, "HTTP status 503 Service Unavailable"},
		"429, 503 with Retry-After/429":                 {simulator.Fault{Operation: create, Status: 429, RetryAfter: 40}, 40 * time.Second, true, "HTTP status 429 Too Many Requests"},
		"429, 503 with Retry-After/503":                 {simulator.Fault{Operation: create, Status: 503, RetryAfter: 3600}, window, true, "HTTP status 503 Service Unavailable"},
		"401, 403/401":                                  {simulator.Fault{Operation: create, Status: 401}, repeated, true, rejects + "401" + variable},
		"401, 403/403":                                  {simulator.Fault{Operation: create, Status: 403}, repeated, true, rejects + "403" + variable},
		"409 to a creation":                             {simulator.Fault{Operation: create, Status: 409}, once, false, ""},
		"404 to a cancellation":                         {simulator.Fault{Operation: "cancelEvent", Status: 404}, once, false, ""},
		"404 to an update":                              {simulator.Fault{Operation: update, Status: 404}, once, true, "HTTP status 404 Not Found"},
		"400, 409 to an update and other statuses/400":  {simulator.Fault{Operation: create, Status: 400}, once, true, "HTTP status 400 Bad Request"},
		"400, 409 to an update and other statuses/409":  {simulator.Fault{Operation: update, Status: 409}, once, true, "HTTP status 409 Conflict"},
		"400, 409 to an update and other statuses/422":  {simulator.Fault{Operation: update, Status: 422}, once, true, "HTTP status 422 Unprocessable Entity"},
		"returns no JSON/creation":                      {simulator.Fault{Operation: create, Body: "<html>"}, repeated, true, "it returned a response that is not the expected JSON"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, storagetest.SQLite(t))

			send := f.client.Send
			if c.fault.Delay > 0 {
				config := notification.DefaultConfig()
				config.URL, config.Timeout = "http://notification.example.com", time.Millisecond
				send = notification.New(config, endless{}).Send
			}

			// The event exists, so that the other messages can be delivered.
			if err := f.client.Send(t.Context(), notification.Message{
				EventID: upgradeID, InstanceID: "one", Type: notification.Kyma, Action: notification.ActionCreate,
			}); err != nil {
				t.Fatal(err)
			}

			if c.fault == (simulator.Fault{}) {
				f.server.Close()
			}

			c.fault.Times = -1
			f.simulated.Inject(c.fault)

			replica := f.replica(f.store, send)
			f.end(f.upgrade("one"), process.Canceled)

			began := f.clock.Now()
			f.deliver(replica)

			if c.retried == once {
				f.deliver(replica)
				f.wantLogged(c.givenUp, c.logged)
				f.wantShown(name)
				f.wantOthers(c.givenUp)

				return
			}

			for _, step := range []struct {
				at   time.Duration
				want bool
			}{{c.retried - time.Millisecond, false}, {c.retried, true}} {
				if due, err := f.store.Due(f.Context(), began.Add(step.at), 9); err != nil || (len(due) == 1) != step.want {
					f.Errorf("%s after the first attempt %+v is due, %v", step.at, due, err)
				}
			}

			f.wantLogged(false, "")

			for f.clock.Since(began) < window {
				f.wantLogged(false, "")
				f.clock.Step(5 * time.Second)
				f.deliver(replica)
			}

			f.wantLogged(c.givenUp, c.logged)
			f.wantShown(name)

			if c.fault.Operation != "" && c.fault.Delay == 0 {
				f.deliver(replica)
				f.wantOthers(c.givenUp)
			}
		})
	}
}

// wantOthers checks that two or all three messages of the event were delivered.
func (f *fixture) wantOthers(givenUp bool) {
	f.Helper()

	if givenUp {
		f.wantCounts(2, 1, 0)
	} else {
		f.wantCounts(3, 0, 0)
	}
}

// endless is a transport without responses.
type endless struct{}

func (endless) RoundTrip(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()

	return nil, request.Context().Err()
}

// wantShown compares the error in the last warning about an undelivered message with the row of the table. Without a warning, the row
// must show no text.
func (f *fixture) wantShown(row string) {
	f.Helper()

	text := ""

	for line := range strings.Lines(f.log.String()) {
		var entry struct{ Msg, Error string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			f.Fatal(err)
		}

		if strings.Contains(entry.Msg, "gave up sending the message") {
			text = entry.Error
		}
	}

	faulttable.Shows(f.T, "notifications.md#delivery", row, text)
}

// wantLogged checks whether the log has the warning about an undelivered message, and that it contains the text.
func (f *fixture) wantLogged(givenUp bool, text string) {
	f.Helper()

	if got := strings.Contains(f.log.String(), "gave up sending the message"); got != givenUp || !strings.Contains(f.log.String(), text) {
		f.Errorf("the log is %q, want %q", f.log.String(), text)
	}
}

// TestGivenUpMessages lets the replica give up sending the creation of an event. It must still send the later messages: a lost response may
// hide that the event exists.
func TestGivenUpMessages(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	replica := f.replica(f.store, f.client.Send)
	upgrade := f.upgrade("one")

	f.simulated.Inject(simulator.Fault{Operation: "createEvent", Lost: true, Times: -1})

	var pauses []time.Duration

	last := f.clock.Now()

	for calls := 0; f.clock.Since(last) <= notify.Window; f.clock.Step(5 * time.Second) {
		f.deliver(replica)

		if made := len(f.simulated.Calls()); made > calls {
			pauses, calls, last = append(pauses, f.clock.Since(last)), made, f.clock.Now()
		}
	}

	want := []time.Duration{0, 5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute, time.Minute, 45 * time.Second}
	if diff := cmp.Diff(want, pauses); diff != "" {
		f.Errorf("the pauses add up to the window: -want +got\n%s", diff)
	}

	f.end(upgrade, process.Succeeded)
	f.deliver(replica)

	got := f.simulated.Received()[upgrade.ID]
	if len(got) != len(want)+2 || !slices.Equal(slices.Compact(got), []string{"create", "1", "2"}) {
		f.Errorf("received %v", got)
	}

	f.wantCounts(2, 1, 0)
	f.wantLogged(true, "customers are not informed (create)")
}

// TestOtherEventsAreNotDelayed delivers the messages of one event while the service rejects the messages of another event.
func TestOtherEventsAreNotDelayed(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	first, second := f.upgrade("one"), f.upgrade("two")

	replica := f.replica(f.store, func(ctx context.Context, message notification.Message) error {
		if message.EventID == first.ID {
			return f.client.Send(ctx, notification.Message{Action: notification.ActionCreate}) // rejected
		}

		return f.client.Send(ctx, message)
	})

	f.deliver(replica)
	f.wantReceived("the other event", second.ID, "create", "1")
	f.wantReceived("the rejected one", first.ID)
}

// TestOneReplicaDelivers runs two replicas at the same time.
func TestOneReplicaDelivers(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)

		var upgrades []process.Record
		for number := range 20 {
			upgrades = append(upgrades, f.upgrade(strconv.Itoa(number)))
		}

		var group sync.WaitGroup

		for range 2 {
			replica := f.replica(f.store, f.client.Send)

			group.Go(func() { f.deliver(replica) })
		}

		group.Wait()

		for _, upgrade := range upgrades {
			f.wantReceived("each message once", upgrade.ID, "create", "1")
		}
	})
}

// TestFrozenReplica freezes a replica during a call for longer than its lease. It must not send another message.
func TestFrozenReplica(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	upgrade := f.upgrade("one")
	other := f.replica(f.store, f.client.Send)

	frozen := f.replica(f.store, func(ctx context.Context, message notification.Message) error {
		if err := f.client.Send(ctx, message); err != nil {
			return err
		}

		f.deliver(other)
		f.wantReceived("the lease is valid", upgrade.ID, "create")
		f.clock.Step(timeout + time.Minute)
		f.deliver(other)

		return nil
	})

	f.deliver(frozen)
	f.wantReceived("the other replica repeats the message and continues", upgrade.ID, "create", "create", "1")
	f.wantCounts(2, 0, 0)
}

// TestStoppedReplica stops a replica. Another one must get the lease at once.
func TestStoppedReplica(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	upgrade := f.upgrade("one")

	ctx, stop := context.WithCancel(f.Context())
	stopping := f.replica(f.store, func(context.Context, notification.Message) error {
		stop()

		return context.Canceled
	})

	if err := stopping.Part().Run(ctx); err != nil {
		f.Error(err)
	}

	f.deliver(f.replica(f.store, f.client.Send))
	f.wantReceived("the next replica continues", upgrade.ID, "create", "1")
	f.wantLogged(false, "")
}

// errKilled ends a replica: its later writes fail, too.
var errKilled = errors.New("the replica was killed")

// mortal is a replica that dies at one of its writes and calls: number at, before or after the write or call takes effect.
type mortal struct {
	notify.Store

	send   func(context.Context, notification.Message) error
	mutex  sync.Mutex
	number int
	at     int
	after  bool
	dead   bool
}

// run runs a write or call unless the replica is dead.
func (m *mortal) run(call func() error) error {
	m.mutex.Lock()
	m.number++
	dies := m.number == m.at
	m.dead = m.dead || dies
	dead := m.dead
	m.mutex.Unlock()

	if dead && (!dies || !m.after) {
		return errKilled
	}

	err := call()
	if dies {
		return errKilled
	}

	return err
}

func (m *mortal) Hold(ctx context.Context, owner string, now, until time.Time) (held bool, err error) {
	err = m.run(func() error {
		held, err = m.Store.Hold(ctx, owner, now, until)

		return err
	})

	return held, err
}

func (m *mortal) Add(ctx context.Context, owner string, events []eventlog.Event, position, last int64) (added bool, err error) {
	err = m.run(func() error {
		added, err = m.Store.Add(ctx, owner, events, position, last)

		return err
	})

	return added, err
}

func (m *mortal) Attempt(ctx context.Context, message notifications.Pending, now time.Time) (begun notifications.Pending, err error) {
	err = m.run(func() error {
		begun, err = m.Store.Attempt(ctx, message, now)

		return err
	})

	return begun, err
}

func (m *mortal) Retry(ctx context.Context, message notifications.Pending, next time.Time) error {
	return m.run(func() error { return m.Store.Retry(ctx, message, next) })
}

func (m *mortal) End(ctx context.Context, message notifications.Pending, delivered bool, now time.Time) (ended bool, err error) {
	err = m.run(func() error {
		ended, err = m.Store.End(ctx, message, delivered, now)

		return err
	})

	return ended, err
}

func (m *mortal) Send(ctx context.Context, message notification.Message) error {
	return m.run(func() error { return m.send(ctx, message) })
}

// TestKilledReplica kills the replica before and after each write and each call. Another replica takes over when the lease has expired.
// Each message arrives at least once, in its order, and at most the one that was being sent arrives twice.
func TestKilledReplica(t *testing.T) {
	for at := 1; ; at++ {
		reached := false

		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d after=%t", at, after), func(t *testing.T) {
				f := newFixture(t, storagetest.SQLite(t))
				f.end(f.upgrade("one"), process.Failed)
				f.simulated.Inject(simulator.Fault{Operation: "updateEvent", Status: http.StatusServiceUnavailable})

				victim := &mortal{Store: f.store, send: f.client.Send, at: at, after: after}
				replica := f.replica(victim, victim.Send)

				for range 2 {
					if err := replica.Deliver(f.Context()); err != nil && !errors.Is(err, errKilled) {
						f.Error(err)
					}

					f.clock.Step(10 * time.Second)
				}

				reached = victim.dead

				f.clock.Step(time.Minute)
				f.deliver(f.replica(f.store, f.client.Send))
				f.clock.Step(time.Minute)
				f.deliver(f.replica(f.store, f.client.Send))

				got := f.simulated.Received()[upgradeID]
				if distinct := slices.Compact(slices.Clone(got)); !slices.Equal(distinct, []string{"create", "1", "2"}) || len(got) > len(distinct)+1 {
					f.Errorf("received %v", got)
				}

				if count, _, err := f.store.Backlog(f.Context()); count != 0 || err != nil {
					f.Errorf("%d messages are left, %v", count, err)
				}
			})
		}

		if !reached {
			if at < 12 { // one lease, one addition, and three times a begin, a call and an end
				t.Errorf("only %d writes and calls", at-1)
			}

			return
		}
	}
}
