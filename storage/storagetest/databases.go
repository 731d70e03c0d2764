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

// EachDatabase runs the test as two subtests, with a new SQLite file and with a new PostgreSQL database. Both are empty,
// without tables.
func EachDatabase(t *testing.T, test func(t *testing.T, db *storage.DB)) {
	t.Helper()

	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Open(t, postgrestest.Database(t))) })
}

// SQLite opens a new SQLite file.
func SQLite(tb testing.TB) *storage.DB {
	tb.Helper()

	return Open(tb, fileIn(tb.TempDir()))
}

// Volatile opens a new SQLite file in VolatileDir, for tests with thousands of commits.
func Volatile(tb testing.TB) *storage.DB {
	tb.Helper()

	return Open(tb, fileIn(VolatileDir(tb)))
}

// Copies fills a SQLite database once and returns a function that opens a copy of it in VolatileDir. It is for tests that need
// thousands of databases with the same tables, because copying is much faster than migrating.
func Copies(tb testing.TB, fill func(db *storage.DB)) func(tb testing.TB) *storage.DB {
	tb.Helper()

	original := VolatileDir(tb)

	db, err := storage.Open(tb.Context(), fileIn(original))
	if err != nil {
		tb.Fatal(err)
	}

	fill(db)

	if err := db.Close(); err != nil {
		tb.Fatal(err)
	}

	return func(tb testing.TB) *storage.DB {
		tb.Helper()

		dir := VolatileDir(tb)
		if err := os.CopyFS(dir, os.DirFS(original)); err != nil {
			tb.Fatal(err)
		}

		return Open(tb, fileIn(dir))
	}
}

func fileIn(dir string) storage.Config {
	return storage.Config{Driver: storage.DriverSQLite, Path: filepath.Join(dir, "test.db")}
}

// VolatileDir creates a temporary folder in memory, or on disk if the system has no memory file system. The folder is removed
// after the test.
func VolatileDir(tb testing.TB) string {
	tb.Helper()

	dir, err := os.MkdirTemp("/dev/shm", "test") //nolint:usetesting // TempDir is on disk
	if err != nil {
		return tb.TempDir()
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

// Fill makes a SQLite database reject growth, as on a full disk, until Empty is called.
func Fill(tb testing.TB, db *storage.DB) {
	tb.Helper()
	bound(tb, db, `PRAGMA max_page_count = 1`) // the smallest possible limit: the current size
}

// Empty removes the limit that Fill sets.
func Empty(tb testing.TB, db *storage.DB) {
	tb.Helper()
	bound(tb, db, `PRAGMA max_page_count = 1000000`)
}

// bound executes the pragma on the connection for writes.
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
