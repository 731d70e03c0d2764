package storage_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/test/harness"
)

const (
	// limit is the timeout of a call whose commit waits forever.
	limit = 300 * time.Millisecond
	// waiting selects the sessions in which an update waits for a synchronous standby.
	waiting = ` FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND (query LIKE 'UPDATE%' OR query = 'COMMIT')`
)

// TestAbandonedCommitsStayInvisible checks a call whose context ends while its commit waits for a synchronous standby. The call
// must fail, and nobody may see its change, because a failover would undo it.
func TestAbandonedCommitsStayInvisible(t *testing.T) {
	server := postgrestest.Own(t)
	db := storagetest.Open(t, server.Database(t))
	execute(t, db, createCounter, zero)
	release := requireStandby(t, db)

	for how, write := range writes(db) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		if err := write(ctx); !storage.IsUnavailable(err) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write %s returns %v although no standby has confirmed it", how, err)
		}

		cancel()
	}

	if harness.Within(time.Second, func() bool { return counted(t, db) > 0 }) {
		t.Error("clients see changes that no standby has confirmed")
	}

	release()
	harness.Until(t, "the abandoned commits", func() bool { return counted(t, db) > 0 })
}

// TestCanceledCommitsAreErrors checks that a write fails if an operator cancels the commit's wait for a synchronous standby.
func TestCanceledCommitsAreErrors(t *testing.T) {
	server := postgrestest.Own(t)
	db := storagetest.Open(t, server.Database(t))
	execute(t, db, createCounter, zero)
	requireStandby(t, db)

	for how, write := range writes(db) {
		written := make(chan error, 1)
		go func() { written <- write(t.Context()) }()

		harness.Until(t, "the commit to wait", func() bool {
			commits, err := storage.Get[int](t.Context(), db.Reader(), `SELECT count(*)`+waiting)

			return err == nil && commits == 1
		})
		if _, err := storage.Exec(t.Context(), db.Writer(), `SELECT pg_cancel_backend(pid)`+waiting); err != nil {
			t.Fatal(err)
		}

		if err := <-written; !storage.IsUnavailable(err) {
			t.Errorf("a write %s returns %v although no standby has confirmed it", how, err)
		}
	}
}

// requireStandby makes every commit wait for a synchronous standby that does not exist, until release is called or the test ends.
func requireStandby(t *testing.T, db *storage.DB) (release func()) {
	t.Helper()
	execute(t, db, `CREATE TABLE probe (value INTEGER)`)

	set := func(names string) {
		for _, statement := range []string{`ALTER SYSTEM SET synchronous_standby_names = ` + names, `SELECT pg_reload_conf()`} {
			if _, err := storage.Exec(context.WithoutCancel(t.Context()), db.Writer(), statement); err != nil {
				t.Error(err)
			}
		}
	}

	release = sync.OnceFunc(func() { set("''") })
	t.Cleanup(release)
	set("'*'")
	harness.Until(t, "the server to apply the setting", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()

		_, err := storage.Exec(ctx, db.Writer(), `INSERT INTO probe VALUES (?)`, 1)

		return err != nil
	})

	return release
}
