package service_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestQuotaTakenDuringUpdate moves an instance to another account. During the update, that account gets another
// instance of the plan.
func TestQuotaTakenDuringUpdate(t *testing.T) {
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

	change := environment.UnchangedUpdate(moving)
	change.GlobalAccountID, change.Exclusive = taken.GlobalAccountID, taken.Exclusive

	const want = "account second now has another instance of plan trial, but may have only one: delete the other instance, then retry"

	err := service.NewRows(db, ops, store, bound, clock.RealClock{}).Update(t.Context(), storagetest.Hold(t, db, ops, environment.KindUpdate, moving.ID), moving, change)
	if !failure.Is(err, failure.Quota) || failure.Of(err).Text != want {
		t.Errorf("the error does not explain why retries fail: %s %v", failure.KindOf(err), err)
	}
}

// TestLateWriteOfFrozenReplicaChangesNothing writes to the row of an instance after the operation has ended on
// another replica. Such a write could discard an existing runtime or restore a removed one.
func TestLateWriteOfFrozenReplicaChangesNothing(t *testing.T) {
	writes := map[string]func(ctx context.Context, rows service.Rows, by process.Record, instance environment.Instance) error{
		"SetRuntime": func(ctx context.Context, rows service.Rows, by process.Record, instance environment.Instance) error {
			return rows.SetRuntime(ctx, by, instance, "former")
		},
		"Suspend": func(ctx context.Context, rows service.Rows, by process.Record, instance environment.Instance) error {
			return rows.Suspend(ctx, by, instance, nil)
		},
		"Resume": func(ctx context.Context, rows service.Rows, by process.Record, instance environment.Instance) error {
			return rows.Resume(ctx, by, instance)
		},
		"Update": func(ctx context.Context, rows service.Rows, by process.Record, instance environment.Instance) error {
			change := environment.UnchangedUpdate(instance)
			change.GlobalAccountID = "former"

			return rows.Update(ctx, by, instance, change)
		},
		"Delete": func(ctx context.Context, rows service.Rows, by process.Record, instance environment.Instance) error {
			return rows.Delete(ctx, by, instance)
		},
	}

	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
				keys := storagetest.Keys(t)

				ops, opsErr := operations.Open(t.Context(), db, keys)
				store, storeErr := instances.Open(t.Context(), db, keys)
				bound, boundErr := bindings.Open(t.Context(), db, keys)

				if err := errors.Join(opsErr, storeErr, boundErr); err != nil {
					t.Fatal(err)
				}

				now := time.Now()
				instance := environment.Instance{
					ID: "one", PlanName: "trial", ShootName: "c-one", RuntimeID: "present", GlobalAccountID: "account", CreatedAt: now, UpdatedAt: now,
				}

				if name == "Resume" {
					instance.Suspended = true
				}

				if err := db.InTx(t.Context(), func(tx storage.Tx) error { return storagetest.Insert(t.Context(), tx, store, instance) }); err != nil {
					t.Fatal(err)
				}

				if err := db.InTx(t.Context(), func(tx storage.Tx) error { return store.Update(t.Context(), tx, instance) }); err != nil {
					t.Fatal(err)
				}

				by := storagetest.Hold(t, db, ops, environment.KindUpdate, instance.ID)
				ended := process.Progress{Record: by, Release: true, Now: now}
				ended.Record.State = process.Succeeded

				if _, err := ops.Save(t.Context(), ended); err != nil {
					t.Fatal(err)
				}

				before, err := store.Get(t.Context(), db.Reader(), instance.ID)
				if err != nil {
					t.Fatal(err)
				}

				if err := write(t.Context(), service.NewRows(db, ops, store, bound, clock.RealClock{}), by, instance); err != nil {
					t.Error(err)
				}

				got, err := store.Get(t.Context(), db.Reader(), instance.ID)
				if err != nil {
					t.Fatal(err)
				}

				if diff := cmp.Diff(before, got); diff != "" {
					t.Errorf("-before +after\n%s", diff)
				}
			})
		})
	}
}
