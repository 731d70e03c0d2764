package instanceevents_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture contains a store, and a database with the instances "one" and "two".
type fixture struct {
	*testing.T

	db     *storage.DB
	events *instanceevents.Store
}

func newFixture(t *testing.T, db *storage.DB) fixture {
	t.Helper()

	keys := storagetest.Keys(t)

	if _, err := operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	known, err := instances.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	events, err := instanceevents.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}

	for _, id := range []string{"one", "two"} {
		instance := environment.Instance{ID: id, ShootName: "c-" + id, CreatedAt: began, UpdatedAt: began}
		if err := db.InTx(t.Context(), func(tx storage.Tx) error { return storagetest.Insert(t.Context(), tx, known, instance) }); err != nil {
			t.Fatal(err)
		}
	}

	return fixture{t, db, events}
}

// record records an event that happens the given number of minutes after began.
func (f fixture) record(id, system, result, message string, minute int) {
	f.Helper()

	event := environment.Event{InstanceID: id, System: system, Result: result, Message: message, LastAt: began.Add(time.Duration(minute) * time.Minute)}
	if err := f.db.InTx(f.Context(), func(tx storage.Tx) error { return f.events.Record(f.Context(), tx, event) }); err != nil {
		f.Fatal(err)
	}
}

// want compares the events of an instance, in the form `system result message × count first..last`.
func (f fixture) want(reason, id string, want ...string) {
	f.Helper()

	events, err := f.events.OfInstance(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}

	var got []string
	for _, event := range events {
		got = append(got, fmt.Sprintf("%s %s %s × %d %g..%g", event.System, event.Result, event.Message, event.Count,
			event.FirstAt.Sub(began).Minutes(), event.LastAt.Sub(began).Minutes()))
	}

	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s: -want +got\n%s", reason, diff)
	}
}

func TestRecord(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)

		f.record("one", "reconciler", "renewed", "ok", 1)
		f.record("one", "reconciler", "renewed", "ok", 2)
		f.record("one", "btp-operator", "repaired", "written", 3)
		f.record("one", "reconciler", "failed", "away", 4)
		f.record("one", "reconciler", "failed", "rejected", 5)
		f.record("one", "reconciler", "renewed", "ok", 6)
		f.record("two", "reconciler", "renewed", "ok", 7)
		f.record("gone", "reconciler", "renewed", "ok", 8)

		f.want("equal events that follow each other are one", "one",
			"reconciler renewed ok × 1 6..6", "reconciler failed rejected × 1 5..5", "reconciler failed away × 1 4..4",
			"btp-operator repaired written × 1 3..3", "reconciler renewed ok × 2 1..2")
		f.want("an instance has its own events", "two", "reconciler renewed ok × 1 7..7")
		f.want("an instance that does not exist has none", "gone")

		if err := db.InTx(t.Context(), func(tx storage.Tx) error { return f.events.Remove(t.Context(), tx, "one") }); err != nil {
			t.Error(err)
		}

		f.want("removed", "one")
		f.want("not removed", "two", "reconciler renewed ok × 1 7..7")
	})
}

func TestIntents(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)

		inTx := func(work func(tx storage.Tx) error) {
			t.Helper()

			if err := db.InTx(t.Context(), work); err != nil {
				t.Fatal(err)
			}
		}

		begin := func(id, system string) {
			t.Helper()
			inTx(func(tx storage.Tx) error { return f.events.Begin(t.Context(), tx, id, system, began) })
		}

		want := func(reason, id, system string, want bool) {
			t.Helper()

			if begun, err := f.events.Begun(t.Context(), db.Reader(), id, system); err != nil || begun != want {
				t.Errorf("%s: begun %t, %v", reason, begun, err)
			}
		}

		for range 2 {
			begin("one", "btp-operator")
		}

		begin("one", "lifecycle-manager")
		begin("gone", "btp-operator")
		want("stored", "one", "btp-operator", true)
		want("another instance", "two", "btp-operator", false)
		want("the instance does not exist", "gone", "btp-operator", false)

		for range 2 {
			inTx(func(tx storage.Tx) error { return f.events.End(t.Context(), tx, "one", "btp-operator") })
			want("ended", "one", "btp-operator", false)
		}

		want("another system", "one", "lifecycle-manager", true)
		inTx(func(tx storage.Tx) error { return f.events.Remove(t.Context(), tx, "one") })
		want("the instance is removed", "one", "lifecycle-manager", false)
	})
}

func TestLimit(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		f.record("one", "btp-operator", "repaired", "written", 0)

		for minute := range 3 * instanceevents.Limit {
			f.record("one", "reconciler", []string{"failed", "renewed"}[minute%2], "text", minute)
		}

		events, err := f.events.OfInstance(t.Context(), "one")
		if err != nil || len(events) != instanceevents.Limit+1 {
			t.Fatalf("%d events are kept, want %d of one system and one of the other, %v", len(events), instanceevents.Limit, err)
		}

		if oldest := events[instanceevents.Limit-1].LastAt; !oldest.Equal(began.Add(2 * instanceevents.Limit * time.Minute)) {
			t.Errorf("the oldest event is from %s", oldest)
		}
	})
}

func TestRetention(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)

		for minute := range 4 {
			f.record("one", "reconciler", strconv.Itoa(minute), "text", minute)
		}

		if removed, err := f.events.RemoveBefore(t.Context(), began.Add(3*time.Minute), 2); err != nil || removed != 2 {
			t.Errorf("%d events are removed, %v", removed, err)
		}

		f.want("the oldest ones are removed", "one", "reconciler 3 text × 1 3..3", "reconciler 2 text × 1 2..2")

		clock := clocktesting.NewFakeClock(began.Add(13 * time.Minute))
		if err := f.events.Retention(0, clock, logging.Discard()).Sweep(t.Context()); err != nil {
			t.Error(err)
		}

		f.want("0 keeps all", "one", "reconciler 3 text × 1 3..3", "reconciler 2 text × 1 2..2")

		if err := f.events.Retention(10*time.Minute, clock, logging.Discard()).Sweep(t.Context()); err != nil {
			t.Error(err)
		}

		f.want("an event is kept for the period", "one", "reconciler 3 text × 1 3..3")
	})
}
