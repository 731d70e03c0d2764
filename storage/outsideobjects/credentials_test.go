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

// TestRequestDuringARenewal checks that a credential is renewed again if the renewal was requested while another one ran, and that it
// is not renewed again otherwise.
func TestRequestDuringARenewal(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		store, object := created(t, db, environment.SystemLifecycleManager, environment.KindKubeconfig)
		renewal := outsideobjects.Renewal{Object: object, Now: now, RetryAt: now.Add(5 * time.Minute)}
		later := now.Add(10 * time.Second)

		for _, requested := range []bool{true, false} {
			begin(t, store, renewal)

			if requested {
				inTx(t, db, func(tx storage.Tx) error {
					return store.RequestRenewal(t.Context(), tx, object.InstanceID, []string{object.System}, later)
				})
			}

			inTx(t, db, func(tx storage.Tx) error {
				return store.EndRenewal(t.Context(), tx, renewal, outsideobjects.Result{DueAt: now.Add(time.Hour), IssuedAt: now})
			})

			due, err := store.DueCredentials(t.Context(), []string{object.System}, later, 9)
			if err != nil || (len(due) == 1) != requested {
				t.Fatalf("requested during the renewal: %t, but due afterwards are %+v, %v", requested, due, err)
			}

			renewal.Now, renewal.RetryAt = later, later.Add(5*time.Minute)
		}
	})
}

// TestLateEndOfARenewal ends a renewal after another replica has begun the next one. Operations must wait until the next one has ended.
func TestLateEndOfARenewal(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		store, object := created(t, db, environment.SystemReconciler, environment.KindCluster)
		frozen := outsideobjects.Renewal{Object: object, Now: now, RetryAt: now.Add(5 * time.Minute), Until: now.Add(time.Minute)}
		begin(t, store, frozen)

		next := outsideobjects.Renewal{Object: object, Now: frozen.RetryAt, RetryAt: frozen.RetryAt.Add(5 * time.Minute), Until: frozen.RetryAt.Add(time.Minute)}
		begin(t, store, next)

		for _, row := range []struct {
			name    string
			renewal outsideobjects.Renewal
			until   time.Time
			due     time.Time
		}{
			{"the frozen replica", frozen, next.Until, next.RetryAt},
			{"the next replica", next, time.Time{}, now.Add(time.Hour)},
		} {
			inTx(t, db, func(tx storage.Tx) error {
				return store.EndRenewal(t.Context(), tx, row.renewal, outsideobjects.Result{DueAt: now.Add(time.Hour)})
			})

			found, err := store.OfInstance(t.Context(), object.InstanceID)
			if err != nil || len(found) != 1 {
				t.Fatalf("found %+v, %v", found, err)
			}

			if got := found[0].Credential; !got.RenewingUntil.Equal(row.until) || !got.RenewAt.Equal(row.due) {
				t.Errorf("after %s: reserved until %s and due at %s, want %s and %s", row.name, got.RenewingUntil, got.RenewAt, row.until, row.due)
			}
		}
	})
}

// created records an object with a credential that was never renewed.
func created(t *testing.T, db *storage.DB, system, kind string) (*outsideobjects.Store, environment.OutsideObject) {
	t.Helper()

	store, err := outsideobjects.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	object := environment.OutsideObject{InstanceID: "instance", System: system, Kind: kind, Key: "runtime", State: environment.OutsideCreated}
	inTx(t, db, func(tx storage.Tx) error { return store.Insert(t.Context(), tx, object, now) })

	return store, object
}

// begin begins a renewal.
func begin(t *testing.T, store *outsideobjects.Store, renewal outsideobjects.Renewal) {
	t.Helper()

	if began, err := store.BeginRenewal(t.Context(), renewal); err != nil || !began {
		t.Fatalf("the renewal begins: %t, %v", began, err)
	}
}

// inTx does the work in a transaction.
func inTx(t *testing.T, db *storage.DB, work func(tx storage.Tx) error) {
	t.Helper()

	if err := db.InTx(t.Context(), work); err != nil {
		t.Fatal(err)
	}
}
