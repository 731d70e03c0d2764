package outsideobjects_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestRenewalExcludesOperations begins a renewal and an operation of an instance at the same time. If the renewal begins, the
// operation must see it after its first write.
func TestRenewalExcludesOperations(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		ops, err := operations.Open(t.Context(), db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		store, err := outsideobjects.Open(t.Context(), db, storagetest.Keys(t))
		if err != nil {
			t.Fatal(err)
		}

		creator := storagetest.Hold(t, db, ops, "creation", "other")
		outcomes := map[bool]int{}

		for i := range 40 {
			id := fmt.Sprint("instance-", i)
			cluster := environment.OutsideObject{
				InstanceID: id, System: environment.SystemReconciler, Kind: environment.KindCluster, Key: "runtime", State: environment.OutsideCreated,
			}

			if err := store.Set(t.Context(), creator, cluster, now); err != nil {
				t.Fatal(err)
			}

			var (
				began   bool
				running sync.WaitGroup
				failed  error
			)

			running.Go(func() {
				began, failed = store.BeginRenewal(t.Context(), outsideobjects.Renewal{
					Object: cluster, Now: now, RetryAt: now.Add(time.Minute), Until: now.Add(time.Minute),
				})
			})

			if i%2 == 0 { // begins before the operation
				running.Wait()
			}

			by := storagetest.Hold(t, db, ops, fmt.Sprint("removal-", i), id)
			seen := seenRenewal(t, store, by, cluster)

			running.Wait()

			if failed != nil || began && !seen {
				t.Fatalf("the renewal begins: %t, %v, but the operation sees it: %t", began, failed, seen)
			}

			outcomes[began]++
		}

		if outcomes[true] < 20 {
			t.Errorf("only %d renewals without an operation have begun, want 20", outcomes[true])
		}
	})
}

// seenRenewal begins to remove the object, and reports whether the operation sees a renewal afterwards.
func seenRenewal(t *testing.T, store *outsideobjects.Store, by process.Record, object environment.OutsideObject) bool {
	t.Helper()

	object.State = environment.OutsideRemoving
	if err := store.Set(t.Context(), by, object, now); err != nil {
		t.Fatal(err)
	}

	found, err := store.OfInstance(t.Context(), object.InstanceID)
	if err != nil {
		t.Fatal(err)
	}

	return !found[0].Credential.RenewingUntil.IsZero()
}
