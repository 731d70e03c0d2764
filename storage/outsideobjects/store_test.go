package outsideobjects_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/secret"
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

		store, err := outsideobjects.Open(t.Context(), db, storagetest.Keys(t))
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

		store, err := outsideobjects.Open(t.Context(), db, storagetest.Keys(t))
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

// TestConfigurations stores the configuration of an instance in the Reconciler.
func TestConfigurations(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		keys := storagetest.Keys(t)

		ops, err := operations.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		store, err := outsideobjects.Open(t.Context(), db, keys)
		if err != nil {
			t.Fatal(err)
		}

		by := storagetest.Hold(t, db, ops, "held", "one")
		credential := environment.NewCredential(now, now.Add(time.Hour))

		set := func(instanceID, configuration string, credential environment.Credential) {
			t.Helper()

			if err := store.Set(t.Context(), by, environment.OutsideObject{
				InstanceID: instanceID, System: environment.SystemReconciler, Kind: environment.KindCluster, Key: "runtime of " + instanceID,
				State: environment.OutsideCreated, Credential: credential, Configuration: secret.String(configuration),
			}, now); err != nil {
				t.Fatal(err)
			}
		}

		recorded := func(instanceID string) environment.OutsideObject {
			t.Helper()

			found, err := store.OfInstance(t.Context(), instanceID)
			if err != nil || len(found) != 1 {
				t.Fatalf("recorded %+v, %v", found, err)
			}

			return found[0]
		}

		want := func(reason string, object environment.OutsideObject, want string) {
			t.Helper()

			if got, err := store.Configuration(t.Context(), object); err != nil || got.Reveal() != want {
				t.Errorf("%s: got %q, %v", reason, got.Reveal(), err)
			}
		}

		// stored counts the rows.
		stored := func(reason string, want int) {
			t.Helper()

			if count, err := storage.Get[int](t.Context(), db.Reader(), `SELECT count(*) FROM outside_configurations`); err != nil || count != want {
				t.Errorf("%s: %d configurations, %v", reason, count, err)
			}
		}

		inTx := func(work func(tx storage.Tx) error) {
			t.Helper()

			if err := db.InTx(t.Context(), work); err != nil {
				t.Fatal(err)
			}
		}

		set("one", "", credential)
		want("none was sent", recorded("one"), "")
		set("one", "first", credential)
		set("two", "second", credential)
		set("one", "", environment.Credential{})
		want("a write without one keeps it", recorded("one"), "first")
		want("another instance", recorded("two"), "second")

		sealed, err := storage.Get[string](t.Context(), db.Reader(), `SELECT configuration FROM outside_configurations WHERE id = 'one'`)
		if err != nil || strings.Contains(sealed, "first") {
			t.Errorf("stored in clear: %q, %v", sealed, err)
		}

		late := by
		late.Lease.Fence--

		lost := recorded("one")
		lost.Configuration = "forged"

		if err := store.Set(t.Context(), late, lost, now); !errors.Is(err, process.ErrLeaseLost) {
			t.Errorf("a write without the lease returns %v", err)
		}

		renewed := outsideobjects.Result{DueAt: now.Add(time.Hour), IssuedAt: now.Add(time.Minute), ExpiresAt: now.Add(time.Hour)}
		inTx(func(tx storage.Tx) error {
			return store.EndRenewal(t.Context(), tx, outsideobjects.Renewal{Object: recorded("one")}, renewed)
		})
		want("renewed", recorded("one"), "first")

		failed := outsideobjects.Result{DueAt: now.Add(time.Hour), Problem: "away"}
		inTx(func(tx storage.Tx) error {
			return store.EndRenewal(t.Context(), tx, outsideobjects.Renewal{Object: recorded("one")}, failed)
		})
		want("a renewal has failed", recorded("one"), "first")

		set("one", "", environment.NewCredential(now.Add(time.Hour), now.Add(2*time.Hour))) // as an earlier release does
		want("an earlier release has sent another one", recorded("one"), "")

		renewed.IssuedAt = now.Add(3 * time.Hour)
		inTx(func(tx storage.Tx) error {
			return store.EndRenewal(t.Context(), tx, outsideobjects.Renewal{Object: recorded("one")}, renewed)
		})
		want("a renewal of an obsolete one", recorded("one"), "")

		if _, err := db.Writer().ExecContext(t.Context(), `UPDATE outside_configurations SET configuration = (
			SELECT configuration FROM outside_configurations WHERE id = 'one') WHERE id = 'two'`); err != nil {
			t.Fatal(err)
		}

		if got, err := store.Configuration(t.Context(), recorded("two")); err == nil {
			t.Errorf("the configuration of another instance is %q", got.Reveal())
		}

		stored("two instances", 2)

		if err := store.Remove(t.Context(), by, object("one", "sub", environment.OutsideRemoving)); err != nil {
			t.Fatal(err)
		}

		stored("another object is removed", 2)

		if err := store.Remove(t.Context(), by, recorded("one")); err != nil {
			t.Fatal(err)
		}

		stored("removed", 1)
		inTx(func(tx storage.Tx) error { return store.Move(t.Context(), tx, "two", "leftover") })
		stored("left over", 0)
		set("three", "third", credential)
		inTx(func(tx storage.Tx) error { return store.RemoveAll(t.Context(), tx, "three") })
		stored("all are removed", 0)
	})
}
