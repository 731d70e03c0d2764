package operations_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/postgrestest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// BenchmarkAccept tells what accepting an operation costs beside its floor: a transaction of two plain inserts on the same database
// in the same run. Seen on two cores that had other work to do, one client: 0.47 of the floor on PostgreSQL, 0.38 on SQLite.
func BenchmarkAccept(b *testing.B) {
	databases := map[string]func() *storage.DB{
		"sqlite":   func() *storage.DB { return storagetest.SQLite(b) },
		"postgres": func() *storage.DB { return storagetest.Open(b, postgrestest.Database(b)) },
	}

	for name, open := range databases {
		b.Run(name, func(b *testing.B) {
			db := open()

			store, err := operations.Open(b.Context(), db, storagetest.Keys(b))
			if err != nil {
				b.Fatal(err)
			}

			timed(b, db, func(tx storage.Tx) error {
				_, err := storage.Exec(b.Context(), tx, `CREATE TABLE floor (id TEXT PRIMARY KEY, payload TEXT)`)

				return err
			})

			payload, err := json.Marshal(map[string]string{"some": "data of the size that an operation has"})
			if err != nil {
				b.Fatal(err)
			}

			run, accepting, floor := 0, time.Duration(0), time.Duration(0)

			for b.Loop() {
				run++
				id := strconv.Itoa(run)

				accepting += timed(b, db, func(tx storage.Tx) error {
					return store.Accept(b.Context(), tx, process.New{ID: id, Kind: "test", InstanceID: id, Payload: payload, At: start})
				})
				floor += timed(b, db, func(tx storage.Tx) error {
					for _, row := range []string{"a", "b"} {
						if _, err := storage.Exec(b.Context(), tx, `INSERT INTO floor VALUES (?, ?)`, row+id, string(payload)); err != nil {
							return err
						}
					}

					return nil
				})
			}

			b.ReportMetric(float64(floor)/float64(accepting), "of-floor")
			b.ReportMetric(float64(run)/accepting.Seconds(), "accepts/s")
		})
	}
}

// timed runs work in a transaction and tells how long that took.
func timed(b *testing.B, db *storage.DB, work func(tx storage.Tx) error) time.Duration {
	b.Helper()

	began := time.Now()

	if err := db.InTx(b.Context(), work); err != nil {
		b.Fatal(err)
	}

	return time.Since(began)
}
