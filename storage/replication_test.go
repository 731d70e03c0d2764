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

// waiting selects the sessions in which an update waits for a synchronous standby.
const waiting = ` FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND (query LIKE 'UPDATE%' OR query = 'COMMIT')`

// TestAbandonedCommitsStayInvisible checks a call whose context ends while its commit waits for a synchronous standby. The call
// must fail, and nobody may see its change, because a failover would undo it.
func TestAbandonedCommitsStayInvisible(t *testing.T) {
	server := postgrestest.Own(t)
	db := storagetest.Open(t, server.Database(t))
	execute(t, db, createCounter, zero)

	for how, write := range writes(db) {
		before := counted(t, db)
		release := requireStandby(t, db)
		ctx, cancel := context.WithCancel(t.Context())

		written := make(chan error, 1)
		go func() { written <- write(ctx) }()

		untilCommitWaits(t, db)
		cancel()

		if err := <-written; !storage.IsUnavailable(err) && !errors.Is(err, context.Canceled) {
			t.Errorf("a write %s returns %v although no standby has confirmed it", how, err)
		}

		if harness.Within(300*time.Millisecond, func() bool { return counted(t, db) > before }) {
			t.Errorf("clients see the change of a write %s, which no standby has confirmed", how)
		}

		release()
		harness.Until(t, "the abandoned commit", func() bool { return counted(t, db) > before })
	}
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

		untilCommitWaits(t, db)

		if _, err := storage.Exec(t.Context(), db.Writer(), `SELECT pg_cancel_backend(pid)`+waiting); err != nil {
			t.Fatal(err)
		}

		if err := <-written; !storage.IsUnavailable(err) {
			t.Errorf("a write %s returns %v although no standby has confirmed it", how, err)
		}
	}
}

// untilCommitWaits waits until one update waits for a synchronous standby.
func untilCommitWaits(t *testing.T, db *storage.DB) {
	t.Helper()
	harness.Until(t, "the commit to wait", func() bool {
		commits, err := storage.Get[int](t.Context(), db.Reader(), `SELECT count(*)`+waiting)

		return err == nil && commits == 1
	})
}

// requireStandby makes every commit wait for a synchronous standby that does not exist, until release is called or the test ends.
func requireStandby(t *testing.T, db *storage.DB) (release func()) {
	t.Helper()
	execute(t, db, `CREATE TABLE IF NOT EXISTS probe (value INTEGER)`)

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
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()

		// This commit waits forever if the setting has been applied. Its error may have another reason.
		_, _ = storage.Exec(ctx, db.Writer(), `INSERT INTO probe VALUES (?)`, 1)
		commits, err := storage.Get[int](t.Context(), db.Reader(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'INSERT%'`)

		return err == nil && commits > 0
	})

	return release
}
