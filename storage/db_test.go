package storage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lib/pq"

	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

const (
	createCounter = `CREATE TABLE counter (value BIGINT NOT NULL)`
	zero          = `INSERT INTO counter VALUES (0)`
)

var errWork = errors.New("the work failed")

func counted(t *testing.T, db *storage.DB) int {
	t.Helper()

	value, err := storage.Get[int](t.Context(), db.Reader(), `SELECT value FROM counter`)
	if err != nil {
		t.Fatal(err)
	}

	return value
}

func add(ctx context.Context, tx storage.Tx) error {
	_, err := storage.Exec(ctx, tx, `UPDATE counter SET value = value + 1`)

	return err
}

func TestTransactions(t *testing.T) {
	cases := map[string]struct {
		reason string
		work   func(ctx context.Context, tx storage.Tx) error
		want   int
	}{
		"done":   {"a successful transaction is committed", add, 1},
		"failed": {"a failed transaction is rolled back", func(ctx context.Context, tx storage.Tx) error { return errors.Join(add(ctx, tx), errWork) }, 0},
		"bad statement": {"a failed statement rolls back the transaction", func(ctx context.Context, tx storage.Tx) error {
			if err := add(ctx, tx); err != nil {
				return err
			}

			_, err := storage.Exec(ctx, tx, `UPDATE nothing SET value = 1`)

			return errors.Join(err, errWork)
		}, 0},
		"panic": {"a panic releases the connection", func(ctx context.Context, tx storage.Tx) error {
			_ = add(ctx, tx)

			panic(errWork)
		}, 0},
	}

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		execute(t, db, createCounter, zero)

		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				execute(t, db, `UPDATE counter SET value = 0`)

				err := recovered(func() error {
					return db.InTx(t.Context(), func(tx storage.Tx) error { return c.work(t.Context(), tx) })
				})
				if errors.Is(err, errWork) != (c.want == 0) {
					t.Errorf("%s: got %v", c.reason, err)
				}

				if got := counted(t, db); got != c.want {
					t.Errorf("%s: the counter is %d, want %d", c.reason, got, c.want)
				}

				if err := db.InTx(t.Context(), func(tx storage.Tx) error { return add(t.Context(), tx) }); err != nil {
					t.Errorf("%s: the next transaction returns %v", c.reason, err)
				}
			})
		}
	})
}

func TestAfterCommit(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   int
	}{
		"committed":   {"the function after the commit sees the stored row", nil, 1},
		"rolled back": {"after a rollback the function is not called", errWork, 0},
	}

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		execute(t, db, createCounter, zero)

		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				execute(t, db, `UPDATE counter SET value = 0`)

				seen := 0

				err := db.InTx(t.Context(), func(tx storage.Tx) error {
					storage.AfterCommit(tx, func() { seen = counted(t, db) })

					return errors.Join(add(t.Context(), tx), c.err)
				})
				if !errors.Is(err, c.err) || seen != c.want {
					t.Errorf("%s: the function saw %d, want %d; the transaction returned %v", c.reason, seen, c.want, err)
				}
			})
		}

		t.Run("without a transaction", func(t *testing.T) {
			called := false

			storage.AfterCommit(db.Writer(), func() { called = true })

			if !called {
				t.Error("the function after a single statement was not called")
			}
		})
	})
}

// recovered returns the error that work returns or panics with.
func recovered(work func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err, _ = value.(error)
		}
	}()

	return work()
}

func TestCanceledTransactionLeavesNothing(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		execute(t, db, createCounter, zero)

		ctx, cancel := context.WithCancel(t.Context())

		err := db.InTx(ctx, func(tx storage.Tx) error {
			err := add(ctx, tx)

			cancel()

			return err
		})
		if !errors.Is(err, context.Canceled) || storage.IsUnavailable(err) {
			t.Errorf("got %v, want the canceled context", err)
		}

		if got := counted(t, db); got != 0 {
			t.Errorf("the counter is %d", got)
		}
	})
}

func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		execute(t, db, createCounter, zero)

		err := db.InTx(t.Context(), func(tx storage.Tx) error {
			if err := add(t.Context(), tx); err != nil {
				return err
			}

			if got := counted(t, db); got != 0 {
				t.Errorf("a reader sees %d before the commit", got)
			}

			return nil
		})
		if err != nil || counted(t, db) != 1 {
			t.Errorf("after the commit a reader sees %d, %v", counted(t, db), err)
		}
	})
}

func TestSnapshot(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		execute(t, db, createCounter, zero)

		err := db.InSnapshot(t.Context(), func(tx storage.Tx) error {
			for range 2 {
				if value, err := storage.Get[int](t.Context(), tx, `SELECT value FROM counter`); err != nil || value != 0 {
					t.Errorf("the snapshot shows %d, %v", value, err)
				}

				if err := db.InTx(t.Context(), func(tx storage.Tx) error { return add(t.Context(), tx) }); err != nil {
					t.Errorf("a writer waits for the snapshot: %v", err)
				}
			}

			return errWork
		})
		if !errors.Is(err, errWork) || counted(t, db) != 2 {
			t.Errorf("the counter is %d, %v", counted(t, db), err)
		}

		err = db.InTx(t.Context(), func(tx storage.Tx) error {
			return errors.Join(add(t.Context(), tx), db.InSnapshot(t.Context(), func(tx storage.Tx) error {
				value, err := storage.Get[int](t.Context(), tx, `SELECT value FROM counter`)
				if value != 2 {
					t.Errorf("the snapshot shows %d during a write", value)
				}

				return err
			}))
		})
		if err != nil {
			t.Errorf("the snapshot waits for a writer: %v", err)
		}
	})
}

// TestPathOfAnyCharacters opens files whose paths contain characters with a special meaning in URIs.
func TestPathOfAnyCharacters(t *testing.T) {
	for _, name := range []string{"a#b", "a?b", "a%20b", "a b", "a&b=c", "ä"} {
		path := filepath.Join(t.TempDir(), name)
		db := storagetest.Open(t, storage.Config{Driver: storage.DriverSQLite, Path: path})
		execute(t, db, createCounter, zero)

		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q: the database is in a different file: %v", name, err)
		}

		if mode, err := storage.Get[string](t.Context(), db.Reader(), `PRAGMA journal_mode`); err != nil || mode != "wal" {
			t.Errorf("%q: the settings are lost: journal mode %q, %v", name, mode, err)
		}
	}
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	const writers, each = 8, 10

	path := filepath.Join(storagetest.VolatileDir(t), "test.db") // in memory, so that the test does not depend on the speed of a disk
	db := storagetest.Open(t, storage.Config{Driver: storage.DriverSQLite, Path: path})

	execute(t, db, createCounter, zero)

	var running sync.WaitGroup

	for range writers {
		running.Go(func() {
			for range each {
				// The read and the write are separate statements. They are atomic only if the transaction takes the lock
				// when it starts.
				if err := db.InTx(t.Context(), func(tx storage.Tx) error {
					value, err := storage.Get[int](t.Context(), tx, `SELECT value FROM counter`)
					if err != nil {
						return err
					}

					_, err = storage.Exec(t.Context(), tx, `UPDATE counter SET value = ?`, value+1)

					return err
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}

	running.Wait()

	if got := counted(t, db); got != writers*each {
		t.Errorf("the counter is %d, want %d", got, writers*each)
	}
}

func TestPasswordMayContainAnyCharacter(t *testing.T) {
	config := postgrestest.Database(t)
	config.Password = `it's\ a "b" %zz@/?#`

	db, err := storage.Open(t.Context(), config)
	if err == nil { // the server accepts any password
		err = db.Close()
	}

	if _, answered := errors.AsType[*pq.Error](err); err != nil && !answered {
		t.Errorf("the server received a different password: %v", err)
	}
}

func TestDatabasesThatCannotBeOpened(t *testing.T) {
	cases := map[string]struct {
		reason      string
		config      storage.Config
		want        string
		unavailable bool
	}{
		"driver": {"the driver is unknown", storage.Config{Driver: "mysql"}, `unknown database driver "mysql": use postgres or sqlite`, false},
		"folder": {
			"the error names the file",
			storage.Config{Driver: storage.DriverSQLite, Path: filepath.Join(t.TempDir(), "none", "broker.db")},
			"broker.db", false,
		},
		"no server": {
			"the server may start later", storage.Config{
				Driver: storage.DriverPostgres, User: "me", Password: "hush", Host: "127.0.0.1", Port: "1", Name: "broker", SSLMode: "disable",
			}, "postgres me@127.0.0.1:1/broker", true,
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := storage.Open(t.Context(), c.config)
			if err == nil || !strings.Contains(err.Error(), c.want) || storage.IsUnavailable(err) != c.unavailable {
				t.Errorf("%s: got %v, want an error with %q", c.reason, err, c.want)
			}

			if shown := fmt.Sprintf("%v %+v %v", err, c.config, c.config); strings.Contains(shown, "hush") {
				t.Errorf("%s: the password is in %s", c.reason, shown)
			}
		})
	}
}
