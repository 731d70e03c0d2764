package outsideobjects_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
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

		if err := store.Set(t.Context(), late, object("one", "forged", environment.OutsideRemoving), now); !errors.Is(err, outsideobjects.ErrLeaseLost) {
			t.Errorf("a write without the lease returns %v", err)
		}

		if err := store.Remove(t.Context(), late, first); !errors.Is(err, outsideobjects.ErrLeaseLost) {
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
