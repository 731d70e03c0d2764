package storage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestNoCallOutlivesItsContext freezes the connection to the database before or during a call.
func TestNoCallOutlivesItsContext(t *testing.T) {
	const (
		limit = 200 * time.Millisecond
		// patience is much longer than the sum of limit and cancelGrace, even on a slow machine, and much shorter than TCP timeouts.
		patience = 30 * time.Second
	)

	read := func(ctx context.Context, tx storage.Tx) error {
		_, err := storage.Get[int](ctx, tx, `SELECT value FROM counter WHERE value >= ?`, 0)

		return err
	}

	calls := map[string]struct {
		reason string
		call   func(ctx context.Context, db *storage.DB, line *postgrestest.Proxy) error
	}{
		"ping": {"a readiness probe has a short limit", func(ctx context.Context, db *storage.DB, line *postgrestest.Proxy) error {
			line.Freeze()

			return db.Ping(ctx)
		}},
		"query": {"a read", func(ctx context.Context, db *storage.DB, line *postgrestest.Proxy) error {
			line.Freeze()

			return read(ctx, db.Reader())
		}},
		"begin": {"lib/pq starts a transaction without a context", func(ctx context.Context, db *storage.DB, line *postgrestest.Proxy) error {
			line.Freeze()

			return db.InTx(ctx, func(tx storage.Tx) error { return read(ctx, tx) })
		}},
		"statement": {"the renewal of a lease", func(ctx context.Context, db *storage.DB, line *postgrestest.Proxy) error {
			return db.InTx(ctx, func(tx storage.Tx) error {
				line.Freeze()

				return add(ctx, tx)
			})
		}},
		"commit": {"a commit with an unknown outcome", func(ctx context.Context, db *storage.DB, line *postgrestest.Proxy) error {
			return db.InTx(ctx, func(tx storage.Tx) error {
				err := add(ctx, tx)

				line.Freeze()

				return err
			})
		}},
	}

	config, line := postgrestest.Through(t, postgrestest.Database(t))
	db := storagetest.Open(t, config)
	execute(t, db, createCounter, zero)

	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			if err := read(t.Context(), db.Reader()); err != nil { // opens a connection before the freeze
				t.Fatal(err)
			}

			began := time.Now()

			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()

			err := c.call(ctx, db, line)
			if took := time.Since(began); err == nil || took > patience {
				t.Errorf("%s: the call took %s and returned %v", c.reason, took, err)
			}

			if !storage.IsUnavailable(err) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: want an unavailable database, got %v", c.reason, err)
			}

			line.Thaw()

			if err := db.InTx(t.Context(), func(tx storage.Tx) error { return add(t.Context(), tx) }); err != nil {
				t.Errorf("%s: the next call returned %v", c.reason, err)
			}
		})
	}
}

func TestSlowDatabaseIsUnavailable(t *testing.T) {
	db := storagetest.Open(t, postgrestest.Database(t))

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()

	began := time.Now()

	if _, err := storage.Get[string](ctx, db.Reader(), `SELECT CAST(pg_sleep(?) AS TEXT)`, 60); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a timeout", err)
	}

	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the call waited %s for the response", took)
	}
}

// TestAbandonedReadsEnd checks that the server ends a read when its context ends. Otherwise, the server continues to search large
// tables for clients that have gone.
func TestAbandonedReadsEnd(t *testing.T) {
	db := storagetest.Open(t, postgrestest.Database(t))

	for name, query := range map[string]string{
		"a query":                          `SELECT CAST(pg_sleep(?) AS TEXT)`,
		"a query planned for its argument": storage.Unprepared + `SELECT CAST(pg_sleep(?) AS TEXT)`,
		"a query with an expression":       `WITH slow AS MATERIALIZED (SELECT CAST(pg_sleep(?) AS TEXT) AS value) SELECT value FROM slow`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)

		if _, err := storage.Get[string](ctx, db.Reader(), query, 3600); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want a timeout", name, err)
		}

		cancel()
		wantNoSleepers(t, db, name)
	}
}

// TestReadsEndWithoutARequestToCancel checks that the server ends a read whose client has gone, even if the request to cancel it is lost.
func TestReadsEndWithoutARequestToCancel(t *testing.T) {
	t.Parallel()

	config := postgrestest.Database(t)
	through, line := postgrestest.Through(t, config)
	db, other := storagetest.Open(t, through), storagetest.Open(t, config)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	ended := make(chan error, 1)

	go func() {
		_, err := storage.Get[string](ctx, db.Reader(), `SELECT CAST(pg_sleep(?) AS TEXT)`, 3600)
		ended <- err
	}()

	harness.Until(t, "the start of the read", func() bool { return sleepers(t, other) == 1 })
	line.Cut()

	if err := <-ended; err == nil {
		t.Error("the read succeeded")
	}

	wantNoSleepers(t, other, "a read")
}

// wantNoSleepers waits until the server runs no pg_sleep in the database.
func wantNoSleepers(t *testing.T, db *storage.DB, name string) {
	t.Helper()

	harness.Until(t, "the end of "+name, func() bool { return sleepers(t, db) == 0 })
}

// sleepers returns the number of calls of pg_sleep that the server runs in the database, or -1 if it does not respond.
func sleepers(t *testing.T, db *storage.DB) int {
	t.Helper()

	running, err := storage.Get[int](t.Context(), db.Reader(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' AND query LIKE '%pg_sleep%'`)
	if err != nil {
		return -1
	}

	return running
}

// TestTransactionOfAFrozenReplicaIsEnded checks that the server ends an idle transaction. Otherwise the locks of the
// transaction would block the replicas that take over.
func TestTransactionOfAFrozenReplicaIsEnded(t *testing.T) {
	config := postgrestest.Database(t)
	frozen, other := storagetest.Open(t, config), storagetest.Open(t, config)
	execute(t, frozen, createCounter, zero)

	// The server ends the idle transaction after five seconds, or slightly later under load.
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	err := frozen.InTx(t.Context(), func(tx storage.Tx) error {
		if err := add(t.Context(), tx); err != nil {
			return err
		}

		// The transaction of the first replica is idle while the second replica waits for the row.
		if err := other.InTx(patient, func(tx storage.Tx) error { return add(patient, tx) }); err != nil {
			t.Errorf("the other replica cannot change the row: %v", err)
		}

		return add(t.Context(), tx)
	})
	if !storage.IsUnavailable(err) {
		t.Errorf("the server did not end the idle transaction: %v", err)
	}

	if got := counted(t, other); got != 1 {
		t.Errorf("the counter is %d, want only the change of the other replica", got)
	}
}
