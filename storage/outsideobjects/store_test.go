package outsideobjects_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)

func object(instanceID, key string, state environment.OutsideState) environment.OutsideObject {
	return environment.OutsideObject{InstanceID: instanceID, System: "edp", Kind: "data tenant", Key: key, State: state, UpdatedAt: now}
}

func TestObjects(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		ops, err := operations.Open(t.Context(), db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		store, err := outsideobjects.Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}

		by := storagetest.Hold(t, db, ops, "held", "one")

		set := func(objects ...environment.OutsideObject) {
			t.Helper()

			for _, each := range objects {
				if err := store.Set(t.Context(), by, each, now); err != nil {
					t.Fatal(err)
				}
			}
		}

		of := func(want ...environment.OutsideObject) {
			t.Helper()

			got, err := store.OfInstance(t.Context(), "one")
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v, -want +got\n%s", err, diff)
			}
		}

		first, second := object("one", "sub", environment.OutsideCreating), object("two", "sub", environment.OutsideCreated)
		elsewhere := object("three", "other", environment.OutsideCreated)
		set(first, second, elsewhere)
		of(first)

		first.State = environment.OutsideCreated
		set(first)
		of(first)

		shared, err := store.Sharing(t.Context(), first)
		if diff := cmp.Diff([]environment.OutsideObject{second}, shared); diff != "" || err != nil {
			t.Errorf("sharing: %v, -want +got\n%s", err, diff)
		}

		late := by
		late.Lease.Fence--

		if err := store.Set(t.Context(), late, object("one", "forged", environment.OutsideRemoving), now); !errors.Is(err, process.ErrLeaseLost) {
			t.Errorf("a write without the lease returns %v", err)
		}

		if err := store.Remove(t.Context(), late, first); !errors.Is(err, process.ErrLeaseLost) {
			t.Errorf("a removal without the lease returns %v", err)
		}

		of(first)

		for range 2 {
			if err := store.Remove(t.Context(), by, first); err != nil {
				t.Error(err)
			}

			of()
		}
	})
}

// TestAbandoned looks for evaluations in maintenance: only those without an unfinished upgrade are abandoned.
func TestAbandoned(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		ops, err := operations.Open(t.Context(), db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		store, err := outsideobjects.Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}

		update := storagetest.Hold(t, db, ops, environment.KindUpdate, "updating")
		upgrade := storagetest.Hold(t, db, ops, environment.KindUpgradeKyma, "upgrading")

		var marks []environment.OutsideObject

		for _, id := range []string{"deleted", "updating", "upgrading"} {
			for _, kind := range []string{environment.KindExternalEvaluation, environment.KindInternalEvaluation} {
				evaluation := environment.OutsideObject{
					InstanceID: id, System: environment.SystemAvS, Kind: kind, Key: "7", State: environment.OutsideCreated, UpdatedAt: now,
				}
				mark := evaluation
				mark.Kind, mark.Key = environment.KindMaintenance(kind), "ACTIVE"
				marks = append(marks, mark)

				for _, each := range []environment.OutsideObject{evaluation, mark} {
					if err := store.Set(t.Context(), update, each, now); err != nil {
						t.Fatal(err)
					}
				}
			}
		}

		want := func(reason, after string, limit int, want ...environment.OutsideObject) {
			t.Helper()

			got, err := store.Abandoned(t.Context(), after, limit)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v, -want +got\n%s", reason, err, diff)
			}
		}

		want("without those of the upgrade", "", 9, marks[:4]...)
		want("the next page", "deleted", 9, marks[2:4]...)
		want("the limit", "", 1, marks[0])

		for _, mark := range marks {
			if err := store.Drop(t.Context(), mark); err != nil {
				t.Fatal(err)
			}
		}

		want("dropped", "", 9)

		upgrade.State, upgrade.FinishedAt = process.Failed, now
		if _, err := ops.Save(t.Context(), process.Progress{Record: upgrade, Release: true, Now: now}); err != nil {
			t.Fatal(err)
		}

		want("the failed upgrade kept its records", "", 9, marks[4:]...)
	})
}
