package storagetest

import (
	"testing"

	"github.com/environment-broker/environment-broker/storage"
)

// Fill has a SQLite database take no more than it holds, as on a disk that is full, until Empty.
func Fill(tb testing.TB, db *storage.DB) {
	tb.Helper()
	bound(tb, db, `PRAGMA max_page_count = 1`) // it cannot become smaller than it is
}

// Empty gives the database room again.
func Empty(tb testing.TB, db *storage.DB) {
	tb.Helper()
	bound(tb, db, `PRAGMA max_page_count = 1000000`)
}

func bound(tb testing.TB, db *storage.DB, pragma string) {
	tb.Helper()

	// SQLite has one connection that writes, which is never closed.
	if err := db.InTx(tb.Context(), func(tx storage.Tx) error {
		_, err := storage.Exec(tb.Context(), tx, pragma)

		return err
	}); err != nil {
		tb.Fatal(err)
	}
}
