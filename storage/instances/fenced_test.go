package instances_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestEffectChecksTheLeaseAfterItsWait ends an operation while a late run of the same operation waits for the lock on the
// instance. The late run must change nothing. The test needs PostgreSQL, because SQLite executes one write transaction at
// a time.
func TestEffectChecksTheLeaseAfterItsWait(t *testing.T) {
	db := storagetest.Open(t, storagetest.Postgres(t))

	ops, err := operations.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	store, one := open(t, db), instance("one")
	by := storagetest.Hold(t, db, ops, "held", one.ID)
	ended := process.Progress{Record: by, Release: true, Now: time.Now()}
	ended.Record.State = process.Succeeded

	inTx(t, db, func(tx storage.Tx) {
		if err := storagetest.Insert(t.Context(), tx, store, one); err != nil {
			t.Fatal(err)
		}
	})

	late := ended
	late.Effect = operations.Effect(func(ctx context.Context, tx storage.Tx) error {
		locked, err := store.Hold(ctx, tx, one, one.UpdatedAt.Add(time.Minute))
		if err != nil {
			return err
		}

		locked.RuntimeID = "former"

		return store.Update(ctx, tx, locked)
	})
	result := make(chan error, 1)

	inTx(t, db, func(tx storage.Tx) {
		if _, err := store.Touch(t.Context(), tx, one.ID, one.UpdatedAt.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}

		go func() {
			_, err := ops.Save(t.Context(), late)
			result <- err
		}()

		for waiting := 0; waiting == 0; {
			if waiting, err = storage.Get[int](t.Context(), db.Reader(),
				`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`); err != nil {
				t.Fatal(err)
			}
		}

		if _, err := ops.Save(t.Context(), ended); err != nil {
			t.Fatal(err)
		}
	})

	if err := <-result; !errors.Is(err, process.ErrLeaseLost) {
		t.Errorf("without its lease the run gets %v, want ErrLeaseLost", err)
	}

	want := one
	want.UpdatedAt = one.UpdatedAt.Add(time.Hour)

	if got, err := store.Get(t.Context(), db.Reader(), one.ID); err != nil || !cmp.Equal(want, got) {
		t.Errorf("the late run changed the instance: %v -want +got\n%s", err, cmp.Diff(want, got))
	}
}

func TestHold(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		store, one := open(t, db), instance("one")
		former := one
		former.ShootName = "c-former"

		inTx(t, db, func(tx storage.Tx) {
			if err := storagetest.Insert(t.Context(), tx, store, one); err != nil {
				t.Fatal(err)
			}

			later := one.UpdatedAt.Add(time.Minute)
			if locked, err := store.Hold(t.Context(), tx, one, later); err != nil || !locked.UpdatedAt.Equal(later) {
				t.Errorf("got %+v, %v", locked, err)
			}

			for _, gone := range []environment.Instance{former, instance("two")} {
				if _, err := store.Hold(t.Context(), tx, gone, later); !errors.Is(err, storage.ErrNotFound) {
					t.Errorf("an instance that is gone: %v", err)
				}
			}
		})
	})
}
