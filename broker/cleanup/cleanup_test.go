package cleanup_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/cleanup"
	"github.com/environment-broker/environment-broker/broker/jobs/jobstest"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

const (
	day = 24 * time.Hour
	why = "a test"
)

var began = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fixture is a Cleaner with its stores. No engine runs: operations end when the test calls end.
type fixture struct {
	*testing.T
	cleanup.Cleaner

	entries *auditlog.Store
	clock   *clocktesting.FakePassiveClock
	mutex   sync.Mutex
	wakes   int
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	f := &fixture{T: t, clock: clocktesting.NewFakePassiveClock(began)}
	errs := make([]error, 4)
	f.DB, f.Clock = db, f.clock

	f.Operations, errs[0] = operations.Open(t.Context(), db, storagetest.Keys(t))
	f.Leftovers, errs[1] = leftovers.Open(t.Context(), db)
	f.Objects, errs[2] = outsideobjects.Open(t.Context(), db, storagetest.Keys(t))
	f.entries, errs[3] = auditlog.Open(t.Context(), db, day)

	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}

	f.Recorder = audit.NewRecorder(f.entries, db, f.clock, logging.Discard())
	f.Finished = func(steps []string) []string { return []string{"without " + strings.Join(steps, " ")} }
	f.Wake = func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()

		f.wakes++
	}

	return f
}

// end ends an operation. If the operation has an instance, end accepts the operation first.
func (f *fixture) end(kind string, operation process.New, state process.State) process.Record {
	f.Helper()

	if operation.InstanceID != "" {
		f.inTx(func(tx storage.Tx) error { return f.Operations.Accept(f.Context(), tx, operation) })
	}

	now := f.clock.Now()

	for _, work := range storagetest.Claim(f, f.Operations, process.Claim{Owner: "test", Limit: 1000, Now: now, Until: now.Add(time.Minute)}, kind) {
		progress := process.Progress{Record: work.Record, Release: true, Now: now}
		progress.Record.NextRun = now

		if work.Record.ID == operation.ID {
			progress.Record.State, progress.Record.FinishedAt = state, now
		}

		if _, err := f.Operations.Save(f.Context(), progress); err != nil {
			f.Fatal(err)
		}
	}

	record, err := f.Operations.Get(f.Context(), f.DB.Reader(), operation.ID)
	if err != nil {
		f.Fatal(err)
	}

	return record
}

func (f *fixture) inTx(work func(tx storage.Tx) error) {
	f.Helper()

	if err := f.DB.InTx(f.Context(), work); err != nil {
		f.Fatal(err)
	}
}

// leave stores a deletion that has not completed a step, with an object, and returns its leftover.
func (f *fixture) leave(id string) environment.Leftover {
	f.Helper()

	instance := environment.Instance{ID: id, GlobalAccountID: "acme", ShootName: "c-" + id, RuntimeID: "runtime"}

	deletion, err := environment.NewOperation(environment.KindDeprovision, instance, nil, f.clock.Now())
	if err != nil {
		f.Fatal(err)
	}

	left := environment.NewLeftover(f.end(environment.KindDeprovision, deletion, process.Succeeded), instance, []string{"EDP_Deregistration"}, f.clock.Now())

	f.inTx(func(tx storage.Tx) error { return f.Leftovers.Add(f.Context(), tx, left) })
	f.inTx(func(tx storage.Tx) error {
		_, err := storage.Exec(f.Context(), tx, `INSERT INTO outside_objects (instance_id, system, kind, object_key, state, updated_at)
			VALUES (?, 'edp', 'data tenant', 'sub', 'left over', ?)`, left.Key(), storage.At(f.clock.Now()))

		return err
	})

	return left
}

// cleanups returns the cleanups of the leftover, newest first.
func (f *fixture) cleanups(left environment.Leftover) []process.Record {
	f.Helper()

	all, err := f.Operations.OfInstance(f.Context(), f.DB.Reader(), left.Key())
	if err != nil {
		f.Fatal(err)
	}

	return all
}

func TestClean(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		left := f.leave("one")

		first, err := f.Clean(t.Context(), left.ID, why)
		if err != nil {
			t.Fatal(err)
		}

		if again, err := f.Clean(t.Context(), left.ID, why); err != nil || again != first {
			t.Errorf("during cleanup %q, a repeated call returns %q, %v", first, again, err)
		}

		got := f.cleanups(left)
		if len(got) != 1 || got[0].Kind != environment.KindCleanup || got[0].Tenant != "acme" || got[0].PredecessorID != left.ID ||
			!cmp.Equal(got[0].FinishedStages, []string{"without EDP_Deregistration"}) {
			t.Fatalf("got %+v", got)
		}

		payload, err := f.Operations.Payload(t.Context(), db.Reader(), first)
		if err != nil {
			t.Fatal(err)
		}

		var data environment.Data
		if err := json.Unmarshal(payload, &data); err != nil || data.Instance.RuntimeID != "runtime" {
			t.Errorf("the data of the deletion are missing: %s, %v", payload, err)
		}

		written, err := f.entries.List(t.Context(), auditlog.Filter{InstanceID: "one", Limit: 9})
		if err != nil || len(written) != 1 || written[0].Action != auditlog.ActionCleanup || written[0].OperationID != first || written[0].Reason != why {
			t.Errorf("the audit log has %+v, %v", written, err)
		}

		f.end(environment.KindCleanup, process.New{ID: first}, process.Failed)

		second, err := f.Clean(t.Context(), left.ID, why)
		if err != nil || second == first || f.wakes != 2 {
			t.Errorf("after a failure, the call returns %q, %v; the engine was woken %d times", second, err, f.wakes)
		}

		if _, err := f.Clean(t.Context(), uuid.NewString(), why); !failure.Is(err, failure.NotFound) {
			t.Errorf("an unknown leftover gives %v", err)
		}
	})
}

// TestDailyCleanup lets three replicas look for due leftovers over several days.
func TestDailyCleanup(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)

		const many = 110 // more than one page

		lefts := make([]environment.Leftover, 0, many)
		for i := range many {
			lefts = append(lefts, f.leave(fmt.Sprintf("i%03d", i)))
		}

		run := func() {
			var replicas sync.WaitGroup
			for range 3 {
				replicas.Go(func() { _ = jobstest.Run(t.Context(), f.Job(0)) }) // a replica can lose a race; the next search finds the rest
			}

			replicas.Wait()

			if err := jobstest.Run(t.Context(), f.Job(0)); err != nil {
				t.Error(err)
			}
		}

		want := func(when string, cleanups int) {
			t.Helper()

			for _, left := range lefts {
				if got := len(f.cleanups(left)); got != cleanups {
					t.Fatalf("%s, leftover %s has %d cleanups, want %d", when, left.Instance.ID, got, cleanups)
				}
			}
		}

		f.clock.SetTime(began.Add(day - time.Second))
		run()
		want("before the first day is over", 0)

		f.clock.SetTime(began.Add(day))
		run()
		want("after a day", 1)

		for _, left := range lefts[1:] {
			f.end(environment.KindCleanup, process.New{ID: f.cleanups(left)[0].ID}, process.Succeeded)
		}

		f.clock.SetTime(began.Add(2*day - time.Second))
		run()
		want("within a day after a cleanup", 1)

		f.clock.SetTime(began.Add(2 * day))
		run()

		if one, other := len(f.cleanups(lefts[0])), len(f.cleanups(lefts[1])); one != 1 || other != 2 {
			t.Errorf("a running cleanup is followed by %d others, an ended one by %d, want 0 and 1", one-1, other-1)
		}
	})
}

func TestConfirm(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)
		left, other := f.leave("one"), f.leave("other")

		running, err := f.Clean(t.Context(), left.ID, why)
		if err != nil {
			t.Fatal(err)
		}

		if _, _, err := f.Confirm(t.Context(), left.ID, why); !failure.Is(err, failure.Conflict) {
			t.Errorf("during a cleanup the confirmation gives %v", err)
		}

		f.end(environment.KindCleanup, process.New{ID: running}, process.Failed)

		confirmed, objects, err := f.Confirm(t.Context(), left.ID, why)
		if err != nil || confirmed.ID != left.ID || len(objects) != 1 {
			t.Errorf("got %+v with %v, %v", confirmed, objects, err)
		}

		if _, _, err := f.Confirm(t.Context(), left.ID, why); !failure.Is(err, failure.NotFound) {
			t.Errorf("a repeated confirmation gives %v", err)
		}

		for key, want := range map[string]int{left.Key(): 0, other.Key(): 1} {
			if objects, err := f.Objects.OfInstance(t.Context(), key); err != nil || len(objects) != want {
				t.Errorf("%s has the objects %v, %v", key, objects, err)
			}
		}

		written, err := f.entries.List(t.Context(), auditlog.Filter{InstanceID: "one", Action: auditlog.ActionConfirm, Limit: 9})
		if err != nil || len(written) != 1 || written[0].Reason != why {
			t.Fatalf("the audit log has %+v, %v", written, err)
		}

		want := auditlog.Fields{"steps": []any{"EDP_Deregistration"}, "objects": []any{"edp data tenant sub"}}
		if diff := cmp.Diff(want, written[0].Before); diff != "" {
			t.Errorf("entry, -want +got:\n%s", diff)
		}
	})
}

func TestMetrics(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	metrics := cleanup.Metrics{Leftovers: f.Leftovers, Clock: f.clock, Log: logging.Discard()}

	if got := testutil.CollectAndCount(metrics); got != 0 {
		t.Errorf("without leftovers there are %d metrics", got)
	}

	f.leave("one")
	f.clock.SetTime(began.Add(time.Minute))
	both := f.leave("two")
	f.inTx(func(tx storage.Tx) error {
		return f.Leftovers.SetSteps(t.Context(), tx, both.ID, []string{"EDP_Deregistration", "Remove_Runtime"}, both.ID)
	})
	f.clock.SetTime(began.Add(time.Hour))

	const want = `
		# HELP environment_broker_leftovers Leftovers of deletions and suspensions, by the step that was not completed. All replicas report the same value.
		# TYPE environment_broker_leftovers gauge
		environment_broker_leftovers{step="EDP_Deregistration"} 2
		environment_broker_leftovers{step="Remove_Runtime"} 1
		# HELP environment_broker_leftovers_oldest_seconds Age of the oldest leftover, by step. All replicas report the same value.
		# TYPE environment_broker_leftovers_oldest_seconds gauge
		environment_broker_leftovers_oldest_seconds{step="EDP_Deregistration"} 3600
		environment_broker_leftovers_oldest_seconds{step="Remove_Runtime"} 3540
	`
	if err := testutil.CollectAndCompare(metrics, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
