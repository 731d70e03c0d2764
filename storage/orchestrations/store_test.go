package orchestrations_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)

const id = "orchestration"

// fixture contains the stores of orchestrations, operations and instances.
type fixture struct {
	*testing.T

	db         *storage.DB
	operations *operations.Store
	instances  *instances.Store
	store      *orchestrations.Store
}

func eachDatabase(t *testing.T, test func(f fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		keys := storagetest.Keys(t)

		ops, err := operations.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		rows, err := instances.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		store, err := orchestrations.Open(t.Context(), db, ops)
		if err != nil {
			t.Fatal(err)
		}

		test(fixture{t, db, ops, rows, store})
	})
}

// tx runs work in a transaction that must succeed.
func (f fixture) tx(work func(tx storage.Tx) error) {
	f.Helper()

	if err := f.db.InTx(f.Context(), work); err != nil {
		f.Fatal(err)
	}
}

// add adds the orchestration with the targets. By default, targets are pending and due now.
func (f fixture) add(targets ...environment.Target) environment.Orchestration {
	f.Helper()

	orchestration := environment.Orchestration{
		ID: id, Kind: environment.KindUpgradeCluster, State: environment.OrchestrationPending, Description: "created", OrderedBy: "admin",
		Parameters: fleet.Parameters{Targets: fleet.Targets{Include: []fleet.Target{{Target: "all"}}}}, CreatedAt: now, UpdatedAt: now,
		Wave: 1,
	}

	for i := range targets {
		target := &targets[i]
		target.OrchestrationID, target.OperationID = id, "operation-of-"+target.InstanceID

		if target.State == "" {
			target.State = environment.TargetPending
		}

		if target.NotBefore.IsZero() {
			target.NotBefore = now
		}
	}

	f.tx(func(tx storage.Tx) error {
		return errors.Join(f.store.Insert(f.Context(), tx, orchestration), f.store.AddTargets(f.Context(), tx, targets))
	})

	return orchestration
}

// upgrade accepts and claims the upgrade of the target and marks the target as in progress.
func (f fixture) upgrade(instanceID string) process.Record {
	f.Helper()

	f.tx(func(tx storage.Tx) error {
		return errors.Join(
			f.operations.Accept(f.Context(), tx, process.New{
				ID: "operation-of-" + instanceID, Kind: environment.KindUpgradeCluster, InstanceID: instanceID, Payload: []byte(`{}`), At: now,
			}),
			f.store.SetTarget(f.Context(), tx, environment.Target{
				OrchestrationID: id, InstanceID: instanceID, State: environment.TargetInProgress, NotBefore: now,
			}))
	})

	claimed := storagetest.Claim(f, f.operations, process.Claim{Owner: "holder", Limit: 9, Now: now, Until: now.Add(time.Hour)}, environment.KindUpgradeCluster)
	if len(claimed) != 1 {
		f.Fatalf("claimed %+v", claimed)
	}

	return claimed[0].Record
}

// end ends the operation with the given state.
func (f fixture) end(by process.Record, state process.State) {
	f.Helper()

	by.State, by.FinishedAt, by.Description, by.Problem.Message = state, now.Add(time.Hour), "ended", "problem"
	if _, err := f.operations.Save(f.Context(), process.Progress{Record: by, Release: true, Now: by.FinishedAt}); err != nil {
		f.Fatal(err)
	}
}

func (f fixture) wantStats(reason string, want map[string]int) {
	f.Helper()

	got, err := f.store.Stats(f.Context(), f.db.Reader(), id)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		f.Errorf("%s: %v -want +got\n%s", reason, err, diff)
	}
}

func TestInsertAndList(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		want := f.add()

		got, err := f.store.Get(f.Context(), f.db.Reader(), id)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			f.Errorf("%v -want +got\n%s", err, diff)
		}

		if _, err := f.store.Get(f.Context(), f.db.Reader(), "other"); !errors.Is(err, storage.ErrNotFound) {
			f.Errorf("an unknown orchestration: %v", err)
		}

		second := want
		second.ID, second.CreatedAt, second.State = "second", now.Add(time.Second), environment.OrchestrationFailed
		f.tx(func(tx storage.Tx) error { return f.store.Insert(f.Context(), tx, second) })

		for _, c := range []struct {
			reason        string
			states        []string
			limit, offset int
			want          []environment.Orchestration
			total         int
		}{
			{"newest first", nil, 9, 0, []environment.Orchestration{second, want}, 2},
			{"the second page", nil, 1, 1, []environment.Orchestration{want}, 2},
			{"by state", []string{"failed", "canceled"}, 9, 0, []environment.Orchestration{second}, 1},
		} {
			got, total, err := f.store.List(f.Context(), c.states, c.limit, c.offset)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil || total != c.total {
				f.Errorf("%s: %d, %v -want +got\n%s", c.reason, total, err, diff)
			}
		}
	})
}

func TestTargets(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		targets := []environment.Target{
			{InstanceID: "a", Provider: "aws", Region: "eu"},
			{InstanceID: "b", Provider: "aws", Region: "us"},
			{InstanceID: "c", Provider: "gcp", Region: "eu"},
			{InstanceID: "later", NotBefore: now.Add(time.Hour)},
			{InstanceID: "out", State: environment.TargetLeftOut, Description: "why"},
		}
		for i := range 1000 {
			targets = append(targets, environment.Target{InstanceID: fmt.Sprintf("other %04d", i), State: environment.TargetCanceled})
		}

		f.add(targets...)

		for _, c := range []struct {
			reason             string
			providers, regions []string
			limit              int
			want               []string
		}{
			{"all that are due", nil, nil, 9, []string{"a", "b", "c"}},
			{"limited", nil, nil, 2, []string{"a", "b"}},
			{"without a provider", []string{"aws"}, nil, 9, []string{"c"}},
			{"without a region", nil, []string{"eu"}, 9, []string{"b"}},
		} {
			f.tx(func(tx storage.Tx) error {
				due, err := f.store.Due(f.Context(), tx, id, orchestrations.DueFilter{
					Wave: 1, Now: now, WithoutProviders: c.providers, WithoutRegions: c.regions, Limit: c.limit,
				})

				var got []string
				for _, target := range due {
					got = append(got, target.InstanceID)
				}

				if diff := cmp.Diff(c.want, got); diff != "" {
					f.Errorf("%s: -want +got\n%s", c.reason, diff)
				}

				return err
			})
		}

		f.upgrade("a")
		f.tx(func(tx storage.Tx) error {
			running, err := f.store.Running(f.Context(), tx, id)
			if diff := cmp.Diff(map[orchestrations.Place]int{{Provider: "aws", Region: "eu"}: 1}, running); diff != "" {
				f.Errorf("running -want +got\n%s", diff)
			}

			return errors.Join(err, f.store.CancelPending(f.Context(), tx, id, "canceled"))
		})
		f.wantStats("the others are canceled", map[string]int{"in progress": 1, "canceled": 1003, "left out": 1})

		if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
			return f.store.AddTargets(f.Context(), tx, []environment.Target{{OrchestrationID: id, InstanceID: "a", OperationID: "x", NotBefore: now}})
		}); !storage.IsDuplicate(err) {
			f.Errorf("an instance is a target only once: %v", err)
		}
	})
}

func TestNextDue(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		want := func(reason string, want time.Time) {
			f.tx(func(tx storage.Tx) error {
				got, err := f.store.NextDue(f.Context(), tx, id, 1)
				if !got.Equal(want) {
					f.Errorf("%s: got %s, want %s", reason, got, want)
				}

				return err
			})
		}

		f.add(
			environment.Target{InstanceID: "a", NotBefore: now.Add(2 * time.Hour)}, environment.Target{InstanceID: "b", NotBefore: now.Add(time.Hour)},
			environment.Target{InstanceID: "of the next wave", NotBefore: now, Wave: 2},
		)
		want("the first one", now.Add(time.Hour))
		f.tx(func(tx storage.Tx) error { return f.store.CancelPending(f.Context(), tx, id, "") })
		want("none is pending", time.Time{})
	})
}

// TestEndOfAnUpgrade checks that the end of an upgrade wakes the conductor, even while the conductor runs, and that the result is
// recorded once.
func TestEndOfAnUpgrade(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		f.add(environment.Target{InstanceID: "a"}, environment.Target{InstanceID: "b"})

		conductor := storagetest.Hold(f.T, f.db, f.operations, environment.KindOrchestrate, environment.OrchestrationKey(id))
		other := storagetest.Hold(f.T, f.db, f.operations, environment.KindOrchestrate, environment.OrchestrationKey("other"))
		far := time.Now().Add(48 * time.Hour)

		first := f.upgrade("a")
		f.wantStats("the upgrade runs", map[string]int{"in progress": 1, "pending": 1})
		f.end(first, process.Failed)
		f.wantStats("lists show the state of the upgrade", map[string]int{"failed": 1, "pending": 1})

		for _, record := range []process.Record{conductor, other} {
			record.NextRun = far
			if _, err := f.operations.Save(f.Context(), process.Progress{Record: record, Release: true, Now: now}); err != nil {
				f.Fatal(err)
			}
		}

		for _, c := range []struct {
			id   string
			want time.Time
		}{{conductor.ID, now.Add(time.Hour)}, {other.ID, far.UTC()}} {
			record, err := f.operations.Get(f.Context(), f.db.Reader(), c.id)
			if err != nil || !record.NextRun.Equal(c.want.Truncate(time.Microsecond)) {
				f.Errorf("%s is due at %s, want %s: %v", c.id, record.NextRun, c.want, err)
			}
		}

		failed := func() []environment.Target {
			var found []environment.Target

			f.tx(func(tx storage.Tx) (err error) {
				found, err = f.store.Failed(f.Context(), tx, id, nil)

				return err
			})

			return found
		}

		if found := failed(); len(found) != 0 {
			f.Errorf("before the result is settled: %+v", found)
		}

		f.tx(func(tx storage.Tx) error { return f.store.Settle(f.Context(), tx, id) })

		if found := failed(); len(found) != 1 || found[0].InstanceID != "a" {
			f.Errorf("after the result is settled: %+v", found)
		}
	})
}

func TestRetry(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		f.add(environment.Target{InstanceID: "a", State: environment.TargetFailed}, environment.Target{InstanceID: "b", State: environment.TargetFailed})

		f.tx(func(tx storage.Tx) error {
			failed, err := f.store.Failed(f.Context(), tx, id, []string{"operation-of-a", "operation-of-x"})
			if err != nil || len(failed) != 1 {
				f.Fatalf("found %+v, %v", failed, err)
			}

			return f.store.Retry(f.Context(), tx, id, map[string]string{"a": "next", "x": "none"}, false, now.Add(time.Hour))
		})
		f.wantStats("one is retried", map[string]int{"retrying": 1, "failed": 1})

		f.tx(func(tx storage.Tx) error {
			due, err := f.store.Due(f.Context(), tx, id, orchestrations.DueFilter{Wave: 1, Now: now.Add(time.Hour), Limit: 9})
			if len(due) != 1 || due[0].OperationID != "next" || due[0].FormerID != "operation-of-a" {
				f.Errorf("the retry: %+v", due)
			}

			if err != nil {
				return err
			}

			repeated, err := f.store.Repeated(f.Context(), tx, id, []string{"operation-of-b", "next", "operation-of-a", "operation-of-_", "%"})
			if diff := cmp.Diff([]string{"operation-of-a"}, repeated); diff != "" {
				f.Errorf("repeated, -want +got:\n%s", diff)
			}

			return err
		})
	})
}

func TestListTargets(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		f.add(environment.Target{InstanceID: "a"}, environment.Target{InstanceID: "b", Description: "Waiting"},
			environment.Target{InstanceID: "out", State: environment.TargetLeftOut, Description: "why"})

		f.tx(func(tx storage.Tx) error {
			return storagetest.Insert(f.Context(), tx, f.instances, environment.Instance{
				ID: "a", PlanID: "p", PlanName: "aws", ShootName: "c-a", RuntimeID: "r", GlobalAccountID: "ga", SubAccountID: "sa", CreatedAt: now, UpdatedAt: now,
			})
		})
		f.end(f.upgrade("a"), process.Failed)

		listed, total, err := f.store.ListTargets(f.Context(), id, orchestrations.Filter{Limit: 9})
		if err != nil || total != 2 || len(listed) != 2 {
			f.Fatalf("%d of %d, %v", len(listed), total, err)
		}

		want := orchestrations.Listed{
			Target: listed[0].Target, State: "failed", Description: "ended", Problem: "problem",
			Instance: environment.Instance{ID: "a", PlanID: "p", PlanName: "aws", ShootName: "c-a", RuntimeID: "r", GlobalAccountID: "ga", SubAccountID: "sa"},
		}
		if diff := cmp.Diff(want, listed[0]); diff != "" {
			f.Errorf("-want +got\n%s", diff)
		}

		if second := listed[1]; second.Description != "Waiting" || second.State != "pending" || second.Instance.RuntimeID != "" {
			f.Errorf("a target without an instance: %+v", second)
		}

		for _, c := range []struct {
			reason string
			filter orchestrations.Filter
			want   int
		}{
			{"by state", orchestrations.Filter{States: []string{"failed"}, Limit: 9}, 1},
			{"left out", orchestrations.Filter{States: []string{"left out"}, Limit: 9}, 1},
			{"by operation", orchestrations.Filter{OperationID: "operation-of-b", Limit: 9}, 1},
			{"another operation", orchestrations.Filter{OperationID: "x", Limit: 9}, 0},
		} {
			if listed, total, err := f.store.ListTargets(f.Context(), id, c.filter); err != nil || len(listed) != c.want || total != c.want {
				f.Errorf("%s: %d of %d, %v", c.reason, len(listed), total, err)
			}
		}
	})
}

func TestListNamesRemovedUpgrades(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		f.add(environment.Target{InstanceID: "a", State: environment.TargetSucceeded}, environment.Target{InstanceID: "b", State: environment.TargetCanceled})

		listed, _, err := f.store.ListTargets(f.Context(), id, orchestrations.Filter{Limit: 9})
		if err != nil || len(listed) != 2 {
			f.Fatalf("want two targets, got %d, %v", len(listed), err)
		}

		if listed[0].Description != "The record of this upgrade was deleted after its retention period." || listed[1].Description != "" {
			f.Errorf("want a text for the target that had an upgrade, got %q and %q", listed[0].Description, listed[1].Description)
		}
	})
}

func TestConduct(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		f.add()

		conductor := storagetest.Hold(f.T, f.db, f.operations, environment.KindOrchestrate, environment.OrchestrationKey(id))

		f.tx(func(tx storage.Tx) error {
			orchestration, err := f.store.Conduct(f.Context(), tx, conductor)
			if orchestration.ID != id {
				f.Errorf("got %+v", orchestration)
			}

			return errors.Join(err, f.store.SetState(f.Context(), tx, id, environment.OrchestrationInProgress, "runs", now.Add(time.Minute)))
		})

		conductor.Lease.Fence--

		if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
			_, err := f.store.Conduct(f.Context(), tx, conductor)

			return err
		}); !errors.Is(err, orchestrations.ErrLeaseLost) {
			f.Errorf("a lost lease: %v", err)
		}

		got, err := f.store.Get(f.Context(), f.db.Reader(), id)
		if err != nil || got.State != environment.OrchestrationInProgress || got.Description != "runs" || !got.UpdatedAt.Equal(now.Add(time.Minute)) {
			f.Errorf("got %+v, %v", got, err)
		}

		f.tx(func(tx storage.Tx) error {
			for orchestrationID, want := range map[string]bool{id: true, "other": false} {
				if woken, err := f.store.WakeConductor(f.Context(), tx, orchestrationID, now); err != nil || woken != want {
					f.Errorf("%s: woken %t, %v", orchestrationID, woken, err)
				}
			}

			return nil
		})
	})
}

// TestStarts counts pending and running targets by wave, place and window. Targets whose owners have chosen a time belong to no
// wave.
func TestStarts(t *testing.T) {
	const window = "daily 04:00:00-05:00:00 UTC"

	eachDatabase(t, func(f fixture) {
		begin, end, chosen := now.Add(time.Hour), now.Add(2*time.Hour), now.Add(9*time.Hour)
		waiting := environment.Target{Provider: "aws", Region: "eu", Wave: 2, Window: window, NotBefore: begin, NotAfter: end}

		first, second, other, owners, started := waiting, waiting, waiting, waiting, waiting
		started.InstanceID, started.Region = "started", "us"
		first.InstanceID, second.InstanceID, other.InstanceID, other.Region, owners.InstanceID = "a", "b", "c", "us", "owner's"

		f.add(first, second, other, owners, started,
			environment.Target{InstanceID: "running", Provider: "aws", Region: "eu"},
			environment.Target{InstanceID: "ended", State: environment.TargetSucceeded},
		)
		f.upgrade("running")
		f.tx(func(tx storage.Tx) error {
			if err := f.store.ChooseTime(f.Context(), tx, id, "running", chosen, "owner"); !errors.Is(err, storage.ErrNotFound) {
				f.Errorf("a time for a running upgrade returned %v", err)
			}

			return errors.Join(
				f.store.ChooseTime(f.Context(), tx, id, "owner's", chosen, "owner"),
				f.store.ChooseTime(f.Context(), tx, id, "started", chosen, "owner"),
			)
		})
		f.upgrade("started")

		got, err := f.store.Starts(f.Context(), f.db.Reader(), id)
		if diff := cmp.Diff([]orchestrations.Start{
			{Running: true, Provider: "aws", Region: "us", NotBefore: now, Count: 1},
			{Provider: "aws", Region: "eu", NotBefore: chosen, Count: 1},
			{Wave: 1, Running: true, Provider: "aws", Region: "eu", NotBefore: now, Count: 1},
			{Wave: 2, Provider: "aws", Region: "eu", Window: window, NotBefore: begin, NotAfter: end, Count: 2},
			{Wave: 2, Provider: "aws", Region: "us", Window: window, NotBefore: begin, NotAfter: end, Count: 1},
		}, got); diff != "" || err != nil {
			f.Errorf("%v, -want +got\n%s", err, diff)
		}
	})
}

// TestConductorIsNotTakenOver checks that no replica takes over a conductor during a transaction of the conductor, even if the lease has
// expired. The test needs PostgreSQL, because SQLite has only one write transaction at a time.
func TestConductorIsNotTakenOver(t *testing.T) {
	eachDatabase(t, func(f fixture) {
		if f.db.SkipLocked() == "" {
			return
		}

		f.add()

		conductor := storagetest.Hold(f.T, f.db, f.operations, environment.KindOrchestrate, environment.OrchestrationKey(id))
		later := time.Now().Add(2 * time.Hour)
		claim := func() int {
			return len(storagetest.Claim(f, f.operations, process.Claim{Owner: "another", Limit: 1, Now: later, Until: later.Add(time.Hour)}, environment.KindOrchestrate))
		}

		f.tx(func(tx storage.Tx) error {
			_, err := f.store.Conduct(f.Context(), tx, conductor)

			if claimed := claim(); claimed != 0 {
				f.Errorf("claimed %d conductors during the transaction", claimed)
			}

			return err
		})

		if claimed := claim(); claimed != 1 {
			f.Errorf("claimed %d conductors after the transaction, want 1", claimed)
		}
	})
}
