package subaccounts_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/jobs/jobstest"
	"github.com/environment-broker/environment-broker/broker/subaccounts"
	"github.com/environment-broker/environment-broker/internal/clients/cis"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakecis"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/reports"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

const day = 24 * time.Hour

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture is a Cleaner with its stores and a simulated CIS. Deletions are accepted, but no engine runs.
type fixture struct {
	*testing.T
	subaccounts.Cleaner

	cis       *fakecis.CIS
	clock     *clocktesting.FakePassiveClock
	deleted   []string
	protected map[string]bool
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	f := &fixture{T: t, cis: fakecis.New(), clock: clocktesting.NewFakePassiveClock(began), protected: map[string]bool{}}
	server := httptest.NewServer(f.cis)
	t.Cleanup(server.Close)

	keys := storagetest.Keys(t)

	rows, err := instances.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	ops, err := operations.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	store, err := reports.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}

	f.Cleaner = subaccounts.Cleaner{
		Events: cis.New(fakecis.Config(server.URL), http.DefaultTransport), DB: db, Instances: rows, Operations: ops, Reports: store, Clock: f.clock,
		Delete: f.remove,
	}

	return f
}

// create stores an instance of the subaccount.
func (f *fixture) create(id, subaccount string) {
	f.Helper()

	if err := f.DB.InTx(f.Context(), func(tx storage.Tx) error {
		return storagetest.Insert(f.Context(), tx, f.Instances, environment.Instance{
			ID: id, SubAccountID: subaccount, ShootName: "c-" + id, CreatedAt: began, UpdatedAt: began,
		})
	}); err != nil {
		f.Fatal(err)
	}
}

// remove accepts the deletion of an instance.
func (f *fixture) remove(ctx context.Context, id, _ string) (bool, error) {
	if f.protected[id] {
		return false, failure.New(failure.Conflict, "the instance is protected")
	}

	operation, err := environment.NewOperation(environment.KindDeprovision, environment.Instance{ID: id}, nil, f.clock.Now())
	if err != nil {
		return false, err
	}

	f.deleted = append(f.deleted, id)

	return true, f.DB.InTx(ctx, func(tx storage.Tx) error { return f.Operations.Accept(ctx, tx, operation) })
}

// fail ends all unfinished operations as failed.
func (f *fixture) fail() {
	f.Helper()

	for _, work := range storagetest.Claim(f, f.Operations, process.Claim{
		Owner: "test", Limit: 100, Now: f.clock.Now(), Until: f.clock.Now().Add(time.Minute),
	}, environment.Kinds()...) {
		progress := process.Progress{Record: work.Record, Release: true, Now: f.clock.Now()}
		progress.Record.State, progress.Record.FinishedAt = process.Failed, f.clock.Now()

		if _, err := f.Operations.Save(f.Context(), progress); err != nil {
			f.Fatal(err)
		}
	}
}

// run runs the job, and returns the instances whose deletion it has accepted, sorted.
func (f *fixture) run() ([]string, error) {
	f.deleted = nil
	err := jobstest.Run(f.Context(), f.Job(time.Hour, 0))
	slices.Sort(f.deleted)

	return f.deleted, err
}

func (f *fixture) want(reason string, want ...string) {
	f.Helper()

	if got, err := f.run(); err != nil || !slices.Equal(want, got) {
		f.Errorf("%s: deleted %v, want %v: %v", reason, got, want, err)
	}
}

// TestInstancesOfDeletedSubaccounts deletes the instances of deleted subaccounts, once, and no others.
func TestInstancesOfDeletedSubaccounts(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()

		f := newFixture(t, db)
		f.want("without events")

		f.create("one", "sub-1")
		f.create("another", "sub-1")
		f.create("other", "sub-2")
		f.create("none", "")

		for i := range 1200 { // several pages of events, and several queries
			f.cis.Delete(fmt.Sprintf("unknown-%d", i), began.Add(time.Duration(i)*time.Second))
		}

		f.cis.Delete("sub-1", began)
		f.cis.Delete("sub-1", began) // events can be sent twice
		f.cis.Add("Subaccount_Update", "sub-2", began)

		f.want("a deleted subaccount", "another", "one")
		f.want("running deletions")

		f.cis.Delete("sub-2", began.Add(time.Hour))
		f.want("a new event", "other")
	})
}

// TestEventOfTheFuture checks that an event with a time in the future does not hide later events.
func TestEventOfTheFuture(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.create("one", "sub-1")
	f.create("two", "sub-2")

	f.cis.Delete("sub-1", began.Add(365*day))
	f.want("the event", "one")

	f.clock.SetTime(began.Add(30 * day))
	f.cis.Delete("sub-2", began.Add(30*day))
	f.want("the next event", "two")
}

// TestRepeatedEvents checks that an instance is due once, however often and however far apart CIS returns the event.
func TestRepeatedEvents(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.create("one", "sub-1")
	f.cis.Delete("sub-1", began)

	for i := range 600 { // more than a query
		f.cis.Delete(fmt.Sprintf("unknown-%d", i), began.Add(time.Duration(i+1)*time.Second))
	}

	f.cis.Delete("sub-1", began.Add(time.Hour))

	due, err := f.Job(time.Hour, 1).Due(t.Context())
	if err != nil || len(due.Items) != 1 {
		t.Errorf("%d instances are due, want 1: %v", len(due.Items), err)
	}
}

// TestFailedDeletions repeats failed deletions daily, while the events are read again.
func TestFailedDeletions(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.create("one", "sub-1")
	f.cis.Delete("sub-1", began)
	f.want("the event", "one")
	f.fail()

	f.clock.SetTime(began.Add(day - time.Second))
	f.want("within a day after the failure")

	f.clock.SetTime(began.Add(day))
	f.want("a day after the failure", "one")
	f.fail()

	f.cis.Delete("unknown", began.Add(8*day))
	f.clock.SetTime(began.Add(9 * day))
	f.want("the event is read again, because the next one was not handled before", "one")
	f.fail()

	f.clock.SetTime(began.Add(11 * day))
	f.want("the event is older than the overlap")
}

// TestErrorsKeepTheCursor checks that an event is not lost if its instance cannot be deleted, or if CIS fails in between.
func TestErrorsKeepTheCursor(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.create("one", "sub-1")
	f.create("two", "sub-2")
	f.cis.Delete("sub-1", began)
	f.cis.Delete("sub-2", began.Add(30*day))
	f.protected["one"] = true

	if due, err := f.Job(time.Hour, 0).Due(t.Context()); err != nil || len(due.Items) != 2 || due.Items[0].InstanceID != due.Items[0].ID {
		t.Errorf("due: %+v, %v, want each item to name its instance, so that a dry run finds protected ones", due.Items, err)
	}

	if got, err := f.run(); !failure.Is(err, failure.Conflict) || !slices.Equal([]string{"two"}, got) {
		t.Errorf("a protected instance: deleted %v, %v", got, err)
	}

	f.cis.Inject(simulator.Fault{Operation: "listEvents", Status: http.StatusServiceUnavailable})

	if got, err := f.run(); !failure.Is(err, failure.Transient) || len(got) > 0 {
		t.Errorf("CIS is unreachable: deleted %v, %v", got, err)
	}

	f.protected["one"] = false
	f.want("the protection has ended", "one")

	due, err := f.Job(time.Hour, 0).Due(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(0, len(due.Items)); diff != "" {
		t.Error(diff)
	}
}

// events are the events of a system that sends them unchecked.
type events []cis.Event

func (e events) DeletedSubaccounts(context.Context, time.Time) ([]cis.Event, error) { return e, nil }

// TestFailedLookup fails to find the instances of the second of two batches of subaccounts, because PostgreSQL refuses the ID of one of
// them. The run fails, and the events of both batches are handled in the next one.
func TestFailedLookup(t *testing.T) {
	f := newFixture(t, storagetest.Open(t, storagetest.Postgres(t)))
	f.create("one", "sub-1")
	f.create("two", "sub-2")

	sent := []cis.Event{{Subaccount: "sub-1", At: began}}
	for i := range 500 { // the others are in the second query
		sent = append(sent, cis.Event{Subaccount: fmt.Sprintf("sub-1-%03d", i), At: began})
	}

	f.Events = events(append(sent, cis.Event{Subaccount: "sub-2", At: began.Add(30 * day)}, cis.Event{Subaccount: "z\x00", At: began}))

	if got, err := f.run(); err == nil || len(got) > 0 {
		t.Errorf("deleted %v, %v, want an error", got, err)
	}

	f.Events = events(append(sent, cis.Event{Subaccount: "sub-2", At: began.Add(30 * day)}))
	f.want("both batches are found", "one", "two")
}

// TestDeletionsThatNeedNoOperation checks that an instance that disappears before its deletion is accepted is not a failure: the run is
// complete, so the cursor moves past its event.
func TestDeletionsThatNeedNoOperation(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.create("gone", "sub-1")
	f.create("two", "sub-2")
	f.cis.Delete("sub-1", began)
	f.cis.Delete("sub-2", began.Add(time.Hour))
	f.clock.SetTime(began.Add(time.Hour))

	accept := f.Delete
	f.Delete = func(ctx context.Context, id, reason string) (bool, error) {
		if id != "gone" {
			return accept(ctx, id, reason)
		}

		return false, f.DB.InTx(ctx, func(tx storage.Tx) error {
			_, err := storage.Exec(ctx, tx, `DELETE FROM instances WHERE id = ?`, id)

			return err
		})
	}

	f.want("one deletion ends at once", "two")

	var stored struct{ Newest time.Time }
	if _, err := f.Reports.Get(t.Context(), "events of subaccounts", &stored); err != nil || !stored.Newest.Equal(began.Add(time.Hour)) {
		t.Errorf("the cursor is %s, %v, want that of a complete run", stored.Newest, err)
	}
}

// TestVersion1OfCIS deletes the instances of deleted subaccounts once, although each run reads all events again, and keeps the cursor of
// version 2.0.
func TestVersion1OfCIS(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		server := httptest.NewServer(f.cis)
		t.Cleanup(server.Close)

		config := fakecis.Config(server.URL)
		config.Version = cis.Version1
		f.Events = cis.New(config, http.DefaultTransport)

		f.create("gone", "sub-1")
		f.create("stays", "sub-2")
		f.cis.Delete("sub-1", began)

		for range 2 {
			due, err := f.Job(time.Hour, 0).Due(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			for _, item := range due.Items {
				if _, err := item.Do(t.Context(), "the subaccount was deleted"); err != nil {
					t.Fatal(err)
				}
			}

			if err := due.Complete(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		if diff := cmp.Diff([]string{"gone"}, f.deleted); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}
