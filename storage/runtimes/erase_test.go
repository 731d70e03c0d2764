package runtimes_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestEraseDeleted(t *testing.T) {
	each(t, func(b fixture) {
		accepted, err := operations.Open(b.Context(), b.db, storagetest.Keys(b.T))
		if err != nil {
			b.Fatal(err)
		}

		for _, ordered := range []runtimes.Runtime{runtime("r1", "s1"), runtime("r2", "s2"), runtime("r3", "s3"), runtime("live", "s4"), runtime("other", "s5")} {
			if ordered.ID == "other" {
				ordered.Tenant = "another"
			}

			b.insert(ordered)

			if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
				if _, err := b.store.Remember(b.Context(), tx, ordered.Tenant, "key of "+ordered.ID, "o"+ordered.ID, start); err != nil {
					return err
				}

				return accepted.Accept(b.Context(), tx, process.New{
					ID: "o" + ordered.ID, Kind: "Provision", InstanceID: ordered.ID, Tenant: ordered.Tenant, Payload: []byte(`{}`), At: start,
				})
			}); err != nil {
				b.Fatal(err)
			}

			if ordered.ID != "live" {
				b.markDeleted(ordered.ID, start.Add(time.Hour))
			}
		}

		if count, err := b.store.CountDeleted(b.Context(), "tenant"); count != 3 || err != nil {
			b.Errorf("want 3 deleted runtimes, got %d, %v", count, err)
		}

		for _, want := range []int{2, 1, 0} {
			if err := b.db.InTx(b.Context(), func(tx storage.Tx) error {
				erased, err := b.store.EraseDeleted(b.Context(), tx, "tenant", 2)
				if erased != want {
					b.Errorf("want %d erased runtimes, got %d", want, erased)
				}

				return err
			}); err != nil {
				b.Fatal(err)
			}
		}

		for query, want := range map[string][]string{
			`SELECT id FROM runtimes ORDER BY id`:           {"live", "other"},
			`SELECT key FROM idempotency_keys ORDER BY key`: {"key of live", "key of other"},
		} {
			got, err := storage.Select[string](b.Context(), b.db.Reader(), query)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				b.Errorf("%s: %v -want +got\n%s", query, err, diff)
			}
		}

		left, err := b.store.OfTenant(b.Context(), b.db.Reader(), "tenant", 5)
		if err != nil || len(left) != 1 || left[0].ID != "live" {
			b.Errorf("want the runtime that is not deleted, got %+v, %v", left, err)
		}
	})
}
