package service_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestAPlaceThatIsTakenMeanwhileIsNoFaultOfTheDatabase: an update that moves an instance to another account is recorded at its end.
func TestAPlaceThatIsTakenMeanwhileIsNoFaultOfTheDatabase(t *testing.T) {
	db, keys := storagetest.SQLite(t), storagetest.Keys(t)

	ops, opsErr := operations.Open(t.Context(), db, keys)
	store, storeErr := instances.Open(t.Context(), db, keys)
	bound, boundErr := bindings.Open(t.Context(), db, keys)

	if err := errors.Join(opsErr, storeErr, boundErr); err != nil {
		t.Fatal(err)
	}

	instance := func(id, account string) environment.Instance {
		now := time.Now()

		return environment.Instance{
			ID: id, PlanName: "trial", ShootName: "c-" + id, GlobalAccountID: account, Exclusive: "trial:" + account, CreatedAt: now, UpdatedAt: now,
		}
	}
	moving, taken := instance("moving", "first"), instance("there", "second")

	if err := db.InTx(t.Context(), func(tx storage.Tx) error {
		return errors.Join(storagetest.Insert(t.Context(), tx, store, moving), storagetest.Insert(t.Context(), tx, store, taken))
	}); err != nil {
		t.Fatal(err)
	}

	change := environment.NoChange(moving)
	change.GlobalAccountID, change.Exclusive = taken.GlobalAccountID, taken.Exclusive

	const want = "account second has another instance of plan trial by now, and may have one: delete that, then retry"

	err := service.NewRows(db, ops, store, bound, clock.RealClock{}).Update(t.Context(), moving, change)
	if !failure.Is(err, failure.Quota) || failure.Of(err).Text != want {
		t.Errorf("to try again helps nobody who does not know why: %s %v", failure.KindOf(err), err)
	}
}
