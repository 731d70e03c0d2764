package instances_test

import (
	"errors"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestHoldChecksTheLeaseAfterItsWait ends the operation of a step while the step waits for a transaction that has locked the
// instance. The test needs PostgreSQL, because SQLite executes only one write transaction at a time.
func TestHoldChecksTheLeaseAfterItsWait(t *testing.T) {
	db := storagetest.Open(t, postgrestest.Database(t))

	ops, err := operations.Open(t.Context(), db, storagetest.Keys(t))
	if err != nil {
		t.Fatal(err)
	}

	store, one := open(t, db), instance("one")
	by := storagetest.Hold(t, db, ops, "held", one.ID)

	hold := func() (held environment.Instance, err error) {
		err = db.InTx(t.Context(), func(tx storage.Tx) error {
			held, err = store.Hold(t.Context(), tx, by, one, one.UpdatedAt.Add(time.Minute))

			return err
		})

		return held, err
	}

	inTx(t, db, func(tx storage.Tx) {
		if err := storagetest.Insert(t.Context(), tx, store, one); err != nil {
			t.Fatal(err)
		}
	})

	if held, err := hold(); err != nil || !held.UpdatedAt.Equal(one.UpdatedAt.Add(time.Minute)) {
		t.Fatalf("with its lease the step gets %+v, %v", held, err)
	}

	late := make(chan error, 1)

	inTx(t, db, func(tx storage.Tx) {
		if _, err := store.Touch(t.Context(), tx, one.ID, one.UpdatedAt.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}

		go func() {
			_, err := hold()
			late <- err
		}()

		for waiting := 0; waiting == 0; {
			if waiting, err = storage.Get[int](t.Context(), db.Reader(),
				`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`); err != nil {
				t.Fatal(err)
			}
		}

		by.State = process.Succeeded
		if _, err := ops.Save(t.Context(), process.Progress{Record: by, Release: true, Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
	})

	if err := <-late; !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("without its lease the step gets %v, want ErrNotFound", err)
	}
}
