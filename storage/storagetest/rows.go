package storagetest

import (
	"context"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// Claim claims operations of the given kinds in the order in which an engine would: first those that are due again, and then
// pending ones. It overrides claim.Kind and claim.Pending.
func Claim(t testing.TB, store process.Store, claim process.Claim, kinds ...string) []process.Claimed {
	t.Helper()

	var all []process.Claimed

	for _, kind := range kinds {
		for _, pending := range []bool{false, true} {
			claim.Kind, claim.Pending = kind, pending

			claimed, err := store.Claim(t.Context(), claim)
			if err != nil {
				t.Fatal(err)
			}

			all = append(all, claimed...)
		}
	}

	return all
}

// Hold accepts an operation for the instance and claims it for an hour. Tests of fenced writes need its lease.
func Hold(tb testing.TB, db *storage.DB, store *operations.Store, kind, instanceID string) process.Record {
	tb.Helper()

	now := time.Now()

	err := db.InTx(tb.Context(), func(tx storage.Tx) error {
		return store.Accept(tb.Context(), tx, process.New{
			ID: kind + " of " + instanceID, Kind: kind, InstanceID: instanceID, Payload: []byte(`{}`), At: now,
		})
	})
	if err != nil {
		tb.Fatal(err)
	}

	claimed := Claim(tb, store, process.Claim{Owner: "holder", Limit: 1, Now: now, Until: now.Add(time.Hour)}, kind)
	if len(claimed) != 1 || claimed[0].Record.InstanceID != instanceID {
		tb.Fatalf("claimed %+v, want the %s of %s", claimed, kind, instanceID)
	}

	return claimed[0].Record
}

// Insertions is implemented by instances.Store. This package cannot import package instances, because the tests of that package
// use this one.
type Insertions interface {
	Insertion(instance environment.Instance) (storage.Statement, error)
}

// Insert adds an instance without an operation, in the caller's transaction.
func Insert(ctx context.Context, tx storage.Tx, store Insertions, instance environment.Instance) error {
	insertion, err := store.Insertion(instance)
	if err != nil {
		return err
	}

	return storage.Apply(ctx, tx, insertion)
}
