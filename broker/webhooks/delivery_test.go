package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	delivery "github.com/environment-broker/environment-broker/broker/webhooks"
	"github.com/environment-broker/environment-broker/internal/clients/webhook"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/storage/webhooks"
)

func TestDelivery(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		f.accept("one", "before")

		all := f.add("all", eventlog.Filter{}, nil)
		none := f.add("none", eventlog.Filter{Types: []eventlog.Type{eventlog.InstanceDeleted}}, nil)
		replica := f.replica(f.store, f.client.Send)

		f.deliver(replica)

		var want []string
		for number := range 120 { // two batches
			want = append(want, strconv.Itoa(number))
		}

		f.accept("one", want...)
		f.deliver(replica)
		all.want(t, "events since the creation, in the order of the subject", want...)
		none.want(t, "another type")

		for id := range map[string]bool{"all": true, "none": true} {
			if current, err := f.store.Current(t.Context(), id); err != nil || current.Position != 121 || current.DeliveredAt.IsZero() != (id == "none") {
				t.Errorf("%s: %+v, %v", id, current, err)
			}
		}

		f.wantNoSecrets("all")
	})
}

// TestRepetitions rejects an event of one instance until it is a dead letter.
func TestRepetitions(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	status := http.StatusInternalServerError
	receiver := f.add("hook", eventlog.Filter{}, func(operation string, _ http.Header) int {
		if operation == "poison" {
			return status
		}

		return http.StatusOK
	})
	replica := f.replica(f.store, f.client.Send)

	f.accept("one", "poison", "next")
	f.accept("two", "other")

	var (
		pauses []time.Duration
		seen   int
		last   = f.clock.Now()
	)

	for len(f.undelivered("hook", true)) == 0 && len(pauses) < 20 {
		f.deliver(replica)

		if got := receiver.all(t); len(got) != seen {
			pauses, seen, last = append(pauses, f.clock.Since(last)), len(got), f.clock.Now()
		}

		if due := f.undelivered("hook", false); len(due) > 0 {
			f.clock.SetTime(due[0].NextAt)
		}
	}

	if diff := cmp.Diff(append([]time.Duration{0}, delivery.Pauses()...), pauses); diff != "" {
		t.Errorf("pauses: -want +got\n%s", diff)
	}

	got := receiver.all(t)
	if other := slices.Index(got, "other"); other > 1 || slices.Index(got, "next") != len(got)-1 || len(got) != len(pauses)+2 {
		t.Errorf("received %v, want the other instance at once, and the next event of the instance after the dead letter", got)
	}

	dead := f.undelivered("hook", true)
	if len(dead) != 1 || dead[0].Event.OperationID != "poison" || dead[0].Status != status || dead[0].Error != "HTTP status 500 Internal Server Error" || dead[0].Attempts != 10 {
		t.Errorf("dead letters: %+v", dead)
	}

	f.wantCounts(2, 10, 1, 0, 1)

	for _, c := range []struct {
		position int64
		want     int
	}{{99, 0}, {1, 1}, {0, 0}} {
		if err := f.db.InTx(t.Context(), func(tx storage.Tx) error {
			replayed, err := f.store.Replay(t.Context(), tx, "hook", webhooks.Replayed{Position: c.position}, f.clock.Now())
			if replayed != c.want {
				t.Errorf("replayed %d, want %d", replayed, c.want)
			}

			return err
		}); err != nil {
			t.Fatal(err)
		}
	}

	status = http.StatusOK

	f.deliver(replica)

	if got := receiver.all(t); got[len(got)-1] != "poison" || len(f.undelivered("hook", false))+len(f.undelivered("hook", true)) != 0 {
		t.Errorf("after the replay: received %v", got)
	}

	f.wantNoSecrets("hook")
}

// wantCounts compares the metrics.
func (f *fixture) wantCounts(delivered, failed, dead, pending, letters int) {
	f.Helper()

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(f.metrics)

	want := fmt.Sprintf(`# HELP environment_broker_webhook_attempts_total Attempts by this replica to deliver events to webhooks, by result: delivered, failed, dead letter (a last attempt that failed, which is also counted as failed).
# TYPE environment_broker_webhook_attempts_total counter
environment_broker_webhook_attempts_total{result="dead letter"} %d
environment_broker_webhook_attempts_total{result="delivered"} %d
environment_broker_webhook_attempts_total{result="failed"} %d
# HELP environment_broker_webhook_deliveries Deliveries of events to webhooks by state: pending, dead. All replicas report the same value.
# TYPE environment_broker_webhook_deliveries gauge
environment_broker_webhook_deliveries{state="dead"} %d
environment_broker_webhook_deliveries{state="pending"} %d
`, dead, delivered, failed, letters, pending)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "environment_broker_webhook_attempts_total", "environment_broker_webhook_deliveries"); err != nil {
		f.Error(err)
	}
}

func TestRetryAfter(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.add("hook", eventlog.Filter{}, func(_ string, header http.Header) int {
		header.Set("Retry-After", "600")

		return http.StatusTooManyRequests
	})
	f.accept("one", "1")
	f.deliver(f.replica(f.store, f.client.Send))

	if got := f.undelivered("hook", false); len(got) != 1 || got[0].NextAt.Sub(f.clock.Now()).Round(time.Second) != 10*time.Minute {
		t.Errorf("got %+v", got)
	}
}

func TestGone(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	status := http.StatusGone
	receiver := f.add("hook", eventlog.Filter{}, func(string, http.Header) int { return status })
	replica := f.replica(f.store, f.client.Send)

	f.accept("one", "1", "2")
	f.deliver(replica)
	f.clock.Step(time.Hour)
	f.deliver(replica)
	receiver.want(t, "no attempt after 410", "1")

	current, err := f.store.Current(t.Context(), "hook")
	if err != nil || current.DisabledAt.IsZero() || !strings.Contains(current.DisabledReason, "410") {
		t.Errorf("got %+v, %v", current, err)
	}

	status = http.StatusOK

	if err := f.store.Enable(t.Context(), f.db.Writer(), "hook", f.clock.Now()); err != nil {
		t.Fatal(err)
	}

	f.deliver(replica)
	receiver.want(t, "nothing is lost", "1", "1", "2")

	if current, err = f.store.Current(t.Context(), "hook"); err != nil || !current.MissedAt.IsZero() {
		t.Errorf("nothing was missed: got %+v, %v", current, err)
	}
}

// TestOldestPending checks that the events that a disabled webhook has not received do not count as delayed: their age would hide the delay
// of another webhook.
func TestOldestPending(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		replica := f.replica(f.store, f.client.Send)
		registry := prometheus.NewRegistry()
		registry.MustRegister(f.metrics)

		want := func(reason string, seconds int) {
			t.Helper()

			const name = "environment_broker_webhook_oldest_seconds"

			text := fmt.Sprintf("# HELP %[1]s Age of the oldest event that is pending for an enabled webhook, or 0. All replicas report the same value.\n"+
				"# TYPE %[1]s gauge\n%[1]s %[2]d\n", name, seconds)
			if err := testutil.GatherAndCompare(registry, strings.NewReader(text), name); err != nil {
				t.Errorf("%s: %v", reason, err)
			}
		}

		f.add("gone", eventlog.Filter{}, func(string, http.Header) int { return http.StatusGone })
		f.accept("one", "1")
		f.deliver(replica)
		f.clock.Step(2 * time.Hour)
		want("the webhook is disabled", 0)

		f.add("failing", eventlog.Filter{}, func(string, http.Header) int { return http.StatusInternalServerError })
		f.accept("two", "2")
		f.deliver(replica)
		f.clock.Step(time.Minute)
		want("another webhook waits", 60)
	})
}

// TestMissedEvents removes events, as retention does, before the receiver has confirmed them: a pending event of a disabled webhook, and
// an event that an enabled webhook has not examined yet.
func TestMissedEvents(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		status := http.StatusGone
		receiver := f.add("hook", eventlog.Filter{}, func(string, http.Header) int { return status })
		replica := f.replica(f.store, f.client.Send)

		remove := func(count int) {
			t.Helper()

			if removed, err := f.events.RemoveBefore(t.Context(), f.clock.Now().Add(time.Second), count); err != nil || removed != count {
				t.Fatalf("removed %d events, %v", removed, err)
			}
		}

		wantMissed := func(reason string, want time.Time) {
			t.Helper()

			if current, err := f.store.Current(t.Context(), "hook"); err != nil || !current.MissedAt.Equal(want) {
				t.Errorf("%s: got %+v, %v, want %s", reason, current, err, want)
			}
		}

		f.accept("one", "1", "2")
		f.deliver(replica)

		status = http.StatusOK

		remove(1)
		f.clock.Step(time.Hour)

		enabled := f.clock.Now()
		if err := f.store.Enable(t.Context(), db.Writer(), "hook", enabled); err != nil {
			t.Fatal(err)
		}

		f.deliver(replica)
		receiver.want(t, "the first event was removed", "1", "2")
		wantMissed("a pending event was removed", enabled.UTC())

		f.accept("one", "3", "4")
		remove(2) // "2" and "3"
		f.clock.Step(time.Hour)
		f.deliver(replica)
		receiver.want(t, "the third event was removed", "1", "2", "4")
		wantMissed("an event that was not examined was removed", f.clock.Now().UTC())

		missed := f.clock.Now().UTC()

		remove(1)
		f.clock.Step(time.Hour)
		f.accept("one", "5")
		f.deliver(replica)
		receiver.want(t, "the removed event was confirmed", "1", "2", "4", "5")
		wantMissed("nothing else was missed", missed)
	})
}

// TestErasedEventsAreNotBehind erases events that the webhook has not examined yet.
func TestErasedEventsAreNotBehind(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		f.add("hook", eventlog.Filter{}, nil)

		want := func(reason string, count int) {
			t.Helper()

			backlog, err := f.store.Backlog(t.Context())
			if err != nil || backlog.Behind != int64(count) {
				t.Errorf("%s: got %+v, %v, want %d events behind", reason, backlog, err, count)
			}
		}

		f.accept("one", "1", "2")
		want("no event was examined", 2)

		if err := db.InTx(t.Context(), func(tx storage.Tx) error {
			_, err := f.events.Erase(t.Context(), tx, "account")

			return err
		}); err != nil {
			t.Fatal(err)
		}

		f.deliver(f.replica(f.store, f.client.Send))
		want("all events were erased", 0)
	})
}

// TestUnreadableWebhook delivers to one webhook while the content of another one cannot be decrypted.
func TestUnreadableWebhook(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		broken, hook := f.add("broken", eventlog.Filter{}, nil), f.add("hook", eventlog.Filter{}, nil)

		if _, err := storage.Exec(t.Context(), db.Writer(), `UPDATE webhooks SET content = 'changed' WHERE id = 'broken'`); err != nil {
			t.Fatal(err)
		}

		f.accept("one", "1")

		replica := f.replica(f.store, f.client.Send)
		if err := replica.Start(t.Context()); !errors.Is(err, webhooks.ErrUnreadable) || !strings.Contains(err.Error(), "webhook broken gets no events") {
			t.Errorf("got %v, want the webhook that gets no events", err)
		}

		replica.Wait()
		hook.want(t, "the other webhook is delivered", "1")
		broken.want(t, "nothing can be sent")
	})
}

// TestSlowReceiver delivers to one receiver while another one does not respond.
func TestSlowReceiver(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	release := make(chan struct{})
	called := make(chan struct{})
	first := sync.OnceFunc(func() { close(called) })
	slow := f.add("slow", eventlog.Filter{}, func(string, http.Header) int {
		first()
		<-release

		return http.StatusOK
	})
	arrived := make(chan string, 9)

	f.add("quick", eventlog.Filter{}, func(operation string, _ http.Header) int {
		arrived <- operation

		return http.StatusOK
	})

	replica := f.replica(f.store, f.client.Send)

	f.accept("one", "1")

	if err := replica.Start(t.Context()); err != nil {
		t.Fatal(err)
	}

	<-called

	if got := <-arrived; got != "1" {
		t.Errorf("got %s", got)
	}

	f.accept("one", "2")

	for got := ""; got != "2"; { // a run for the quick receiver may just be ending
		if err := replica.Start(t.Context()); err != nil {
			t.Fatal(err)
		}

		select {
		case got = <-arrived:
		default:
		}
	}

	close(release)
	replica.Wait()
	slow.want(t, "one attempt at a time", slow.all(t)...)
}

// TestTwoReplicas runs two replicas at the same time.
func TestTwoReplicas(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		receiver := f.add("hook", eventlog.Filter{}, nil)

		var want []string

		for number := range 40 {
			id := fmt.Sprintf("%02d", number)
			want = append(want, id)
			f.accept("instance "+id, id)
		}

		var group sync.WaitGroup

		for range 2 {
			replica := f.replica(f.store, f.client.Send)

			group.Go(func() { f.deliver(replica) })
		}

		group.Wait()
		f.deliver(f.replica(f.store, f.client.Send))

		if got := slices.Sorted(slices.Values(receiver.all(t))); !slices.Equal(got, want) {
			t.Errorf("received %v, want each event once", got)
		}
	})
}

// TestFrozenReplica freezes a replica during an attempt for longer than its lease. It must not begin another one.
func TestFrozenReplica(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	receiver := f.add("hook", eventlog.Filter{}, nil)
	other := f.replica(f.store, f.client.Send)
	frozen := f.replica(f.store, func(ctx context.Context, message webhook.Message) error {
		err := f.client.Send(ctx, message)

		f.deliver(other)
		receiver.want(t, "the lease is valid", "1")
		f.clock.Step(delivery.Timeout + time.Minute)
		f.deliver(other)

		return err
	})

	f.accept("one", "1", "2")
	f.deliver(frozen)
	receiver.want(t, "the other replica repeats the attempt and continues", "1", "1", "2")
}

// TestRotation signs with both secrets until the end of the rotation.
func TestRotation(t *testing.T) {
	now := time.Now()
	secrets := webhooks.Secrets{Current: "current", Previous: "previous", PreviousUntil: now.Add(time.Hour)}

	for at, want := range map[time.Duration]int{0: 2, time.Hour - 1: 2, time.Hour: 1} {
		if got := delivery.Signing(secrets, now.Add(at)); len(got) != want || got[0] != "current" {
			t.Errorf("after %s: %d secrets", at, len(got))
		}
	}

	f := newFixture(t, storagetest.SQLite(t))
	receiver := f.add("hook", eventlog.Filter{}, nil)

	if err := f.db.InTx(t.Context(), func(tx storage.Tx) error {
		locked, err := f.store.Lock(t.Context(), tx, "hook")
		if err != nil {
			return err
		}

		locked.Secrets = webhooks.Secrets{Current: webhook.NewSecret(), Previous: locked.Secrets.Current, PreviousUntil: f.clock.Now().Add(time.Hour)}

		return f.store.SetSecrets(t.Context(), tx, locked)
	}); err != nil {
		t.Fatal(err)
	}

	f.accept("one", "1")
	f.deliver(f.replica(f.store, f.client.Send))
	receiver.want(t, "the receiver verifies with the previous secret", "1")
}
