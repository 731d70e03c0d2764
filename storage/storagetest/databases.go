// Package storagetest opens databases for tests and writes the rows that tests need. One test suite can run on both PostgreSQL
// and SQLite. Databases are closed and removed after their test.
package storagetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

// fileName is the name of every SQLite file that this package creates.
const fileName = "test.db"

// EachDatabase runs the test as two subtests, with a new SQLite file and with a new PostgreSQL database. Both databases contain the empty
// tables of both services.
func EachDatabase(t *testing.T, test func(t *testing.T, db *storage.DB)) {
	t.Helper()

	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Open(t, Postgres(t))) })
}

// EachEmptyDatabase is like EachDatabase, but the databases have no tables. It is for tests that use SQL to change finished
// operations, because the triggers of the audit log would reject such changes.
func EachEmptyDatabase(t *testing.T, test func(t *testing.T, db *storage.DB)) {
	t.Helper()

	t.Run("sqlite", func(t *testing.T) { test(t, Open(t, fileIn(VolatileDir(t)))) })
	t.Run("postgres", func(t *testing.T) { test(t, Open(t, postgrestest.Database(t))) })
}

// Postgres creates a PostgreSQL database with the tables of both services. It copies a template database, because migrating the
// tables would take several times as long.
func Postgres(tb testing.TB) storage.Config {
	tb.Helper()

	return postgrestest.Copy(tb, func(config storage.Config) error { return migrate(tb.Context(), config) })
}

// SQLite opens a new SQLite file in VolatileDir with the tables of both services.
func SQLite(tb testing.TB) *storage.DB {
	tb.Helper()

	content, err := sqliteFile()
	if err != nil {
		tb.Fatal(err)
	}

	config := fileIn(VolatileDir(tb))
	if err := os.WriteFile(config.Path, content, 0o600); err != nil {
		tb.Fatal(err)
	}

	return Open(tb, config)
}

func fileIn(dir string) storage.Config {
	return storage.Config{Driver: storage.DriverSQLite, Path: filepath.Join(dir, fileName)}
}

// VolatileDir creates a temporary folder in memory, or on disk if there is little memory. The folder is removed after the test.
func VolatileDir(tb testing.TB) string {
	tb.Helper()

	dir, err := postgrestest.MemoryFolder("test")
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})

	return dir
}

// Open opens the database and closes it after the test.
func Open(tb testing.TB, config storage.Config) *storage.DB {
	tb.Helper()

	db, err := storage.Open(tb.Context(), config)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})

	return db
}

// Keys returns a keyring with one new key.
func Keys(tb testing.TB) *secret.Keyring {
	tb.Helper()

	keys, err := secret.ParseKeyring(secret.NewKey("test"))
	if err != nil {
		tb.Fatal(err)
	}

	return keys
}

// Fill makes a SQLite database reject every write for which the file would have to grow, as on a full disk, until Empty is called.
func Fill(tb testing.TB, db *storage.DB) {
	tb.Helper()
	bound(tb, db, `PRAGMA max_page_count = 1`) // the smallest possible limit: the current size
}

// Empty removes the limit that Fill sets.
func Empty(tb testing.TB, db *storage.DB) {
	tb.Helper()
	bound(tb, db, `PRAGMA max_page_count = 1000000`)
}

// bound executes the pragma, which limits the size of the database, on the connection for writes.
func bound(tb testing.TB, db *storage.DB, pragma string) {
	tb.Helper()

	// The pragma applies only to one connection. With SQLite, a DB has a single connection for writes and never closes it.
	if err := db.InTx(tb.Context(), func(tx storage.Tx) error {
		_, err := storage.Exec(tb.Context(), tx, pragma)

		return err
	}); err != nil {
		tb.Fatal(err)
	}
}
