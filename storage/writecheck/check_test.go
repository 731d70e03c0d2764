package writecheck_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
	"github.com/environment-broker/environment-broker/storage/writecheck"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// fixture is a Check with its database and its clock.
type fixture struct {
	*testing.T

	db    *storage.DB
	clock *clocktesting.FakePassiveClock
	check *writecheck.Check
}

func newFixture(t *testing.T, db *storage.DB) fixture {
	t.Helper()

	f := fixture{T: t, db: db, clock: clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))}

	var err error
	if f.check, err = writecheck.Open(t.Context(), db, f.clock); err != nil {
		t.Fatal(err)
	}

	return f
}

func (f fixture) later(by time.Duration) { f.clock.SetTime(f.clock.Now().Add(by)) }

func (f fixture) run(reason string, want bool) {
	f.Helper()

	if err := f.check.Run(f.Context()); (err == nil) != want {
		f.Errorf("%s: got %v", reason, err)
	}
}

func (f fixture) numbers() []int64 {
	f.Helper()

	numbers, err := storage.Select[int64](f.Context(), f.db.Reader(), `SELECT number FROM write_checks ORDER BY number`)
	if err != nil {
		f.Fatal(err)
	}

	return numbers
}

func (f fixture) execute(statement string) error {
	_, err := storage.Exec(f.Context(), f.db.Writer(), statement)

	return err
}

func TestWritesAreBounded(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		f := newFixture(t, db)

		for range 10 {
			f.run("the database is writable", true)
		}

		if got := f.numbers(); len(got) != 1 || got[0] != 1 {
			t.Errorf("probes within the interval write again: %v", got)
		}

		f.later(5 * time.Second)
		f.run("the interval has passed", true)

		if got := f.numbers(); len(got) != 1 || got[0] != 2 {
			t.Errorf("want one row with the number 2, got %v", got)
		}

		newFixture(t, db).run("another replica", true)

		if got := f.numbers(); len(got) != 2 {
			t.Errorf("want a row for each replica, got %v", got)
		}

		f.later(2 * time.Hour)

		if _, err := writecheck.Open(t.Context(), db, f.clock); err != nil || len(f.numbers()) != 0 {
			t.Errorf("rows of stopped replicas stay: %v, %v", f.numbers(), err)
		}
	})
}

func TestFullSQLiteFile(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))
	f.run("the database is writable", true)

	if err := f.execute(`CREATE TABLE filler (content BLOB)`); err != nil {
		t.Fatal(err)
	}

	storagetest.Fill(t, f.db)

	for f.execute(`INSERT INTO filler VALUES (zeroblob(3000))`) == nil { // use the free pages of the file
	}

	f.run("the last write succeeded a moment ago", true)
	f.later(time.Minute)
	f.run("no request can be stored", false)
	f.run("a failure is not remembered as a success", false)

	storagetest.Empty(t, f.db)
	f.run("the disk has space again", true)
}

func TestReadOnlyPostgres(t *testing.T) {
	config := storagetest.Postgres(t)
	f := newFixture(t, storagetest.Open(t, config))

	if err := f.execute(`ALTER DATABASE "` + config.Name + `" SET default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}

	f.run("the session is older than the setting", true)

	// The setting applies to new sessions.
	if err := f.execute(`SELECT pg_terminate_backend(pg_backend_pid())`); err == nil {
		t.Fatal("the session survives")
	}

	f.later(time.Minute)
	f.run("the database responds, but rejects writes", false)
}

func TestCanceledProbe(t *testing.T) {
	f := newFixture(t, storagetest.SQLite(t))

	// A transaction keeps the only connection for writes.
	err := f.db.InTx(t.Context(), func(storage.Tx) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		if err := f.check.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the error of the context", err)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	f.run("the database is writable again", true)
}
