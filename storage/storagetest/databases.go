// Package storagetest gives the stores' tests both databases, so that one suite is the contract of both.
package storagetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

// EachDatabase runs the test on a new SQLite file and on a new PostgreSQL database.
func EachDatabase(t *testing.T, test func(t *testing.T, db *storage.DB)) {
	t.Helper()

	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Open(t, postgrestest.Database(t))) })
}

// SQLite opens a new file.
func SQLite(tb testing.TB) *storage.DB {
	tb.Helper()

	return Open(tb, fileIn(tb.TempDir()))
}

// Volatile opens a new SQLite file in memory, where the system has a folder there, for tests with thousands of commits: what a disk does
// with them is not what they test.
func Volatile(tb testing.TB) *storage.DB {
	tb.Helper()

	return Open(tb, fileIn(VolatileDir(tb)))
}

// Copies has a database filled once and returns what opens a copy of it each time, as Volatile does. It is for tests that need thousands of
// databases with the same tables: to make the tables takes much longer than to copy them.
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

// VolatileDir makes a folder in memory, or on disk where the system has none there. It goes with the test.
func VolatileDir(tb testing.TB) string {
	tb.Helper()

	dir, err := os.MkdirTemp("/dev/shm", "test") //nolint:usetesting // TempDir is on a disk
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

// Open opens the database and closes it with the test.
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
