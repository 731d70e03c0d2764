package storage_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/environment-broker/environment-broker/storage"
)

// TestConnectionsAreGivenInOrder checks that callers get the only write connection of SQLite in the order in which they asked for
// it.
func TestConnectionsAreGivenInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")

	synctest.Test(t, func(t *testing.T) {
		db, err := storage.Open(t.Context(), storage.Config{Driver: storage.DriverSQLite, Path: path})
		if err != nil {
			t.Fatal(err)
		}

		var order []int

		release, want := make(chan struct{}), []int{}

		go func() {
			if err := db.InTx(t.Context(), func(storage.Tx) error {
				<-release

				return nil
			}); err != nil {
				t.Error(err)
			}
		}()

		synctest.Wait()

		for number := range 30 {
			want = append(want, number)

			go func() {
				if err := db.InTx(t.Context(), func(storage.Tx) error {
					order = append(order, number) // the callback runs while its caller has the only connection

					return nil
				}); err != nil {
					t.Error(err)
				}
			}()

			synctest.Wait()
		}

		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		if _, err := storage.Select[int](impatient, db.Writer(), `SELECT 1`); !storage.IsUnavailable(err) {
			t.Errorf("a caller whose time is up gets %v, want an unavailable database", err)
		}

		close(release)
		synctest.Wait()

		if !slices.Equal(order, want) {
			t.Errorf("order of the callers: %v", order)
		}

		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}
