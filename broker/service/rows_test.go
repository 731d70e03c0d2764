package service_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/quota"
	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// TestQuotaTakenDuringUpdate moves an instance to another account. During the update, that account gets another
// instance of the plan. The update must fail with an error that says what to do.
func TestQuotaTakenDuringUpdate(t *testing.T) {
	db := storagetest.SQLite(t)
	tables := openTables(t, db)
	ops, store := tables.Operations, tables.Instances

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

	ended := process.Progress{Record: storagetest.Hold(t, db, ops, environment.KindUpdate, moving.ID), Release: true, Now: time.Now()}
	ended.Record.State = process.Succeeded
	ended.Effect = service.NewRows(tables, clock.RealClock{}).Update(moving, change)

	_, err := ops.Save(t.Context(), ended)
	if _, is := errors.AsType[*process.EffectError](err); !is || !failure.Is(err, failure.Quota) || failure.Of(err).Text != want {
		t.Errorf("the error does not explain why retries fail: %s %v", failure.KindOf(err), err)
	}
}

// TestQuotaUsedUpDuringUpdate moves an instance to another account, which gets as many instances as a quota allows during the update.
func TestQuotaUsedUpDuringUpdate(t *testing.T) {
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		tables := openTables(t, db)

		parsed, err := quota.Parse([]byte("quotas: [{name: clusters, per: [account], limit: 1}]"), nil)
		if err != nil {
			t.Fatal(err)
		}

		tables.Quotas = quota.Checker{DB: db, Instances: tables.Instances, Current: func() quota.Quotas { return parsed }}
		moving := environment.Instance{ID: "moving", ShootName: "c-1", GlobalAccountID: "first", CreatedAt: time.Now(), UpdatedAt: time.Now()}
		taken := environment.Instance{ID: "there", ShootName: "c-2", GlobalAccountID: "second", CreatedAt: time.Now(), UpdatedAt: time.Now()}

		if err := db.InTx(t.Context(), func(tx storage.Tx) error {
			return errors.Join(storagetest.Insert(t.Context(), tx, tables.Instances, moving), storagetest.Insert(t.Context(), tx, tables.Instances, taken))
		}); err != nil {
			t.Fatal(err)
		}

		change := environment.UnchangedUpdate(moving)
		change.GlobalAccountID = taken.GlobalAccountID

		ended := process.Progress{Record: storagetest.Hold(t, db, tables.Operations, environment.KindUpdate, moving.ID), Release: true, Now: time.Now()}
		ended.Record.State = process.Succeeded
		ended.Effect = service.NewRows(tables, clock.RealClock{}).Update(moving, change)

		const want = "the quota clusters is used up: 1 of 1 instances; delete an instance or raise the limit, then retry"
		if _, err := tables.Operations.Save(t.Context(), ended); !failure.Is(err, failure.Quota) || failure.Of(err).Text != want {
			t.Errorf("the error does not explain why retries fail: %s %v", failure.KindOf(err), err)
		}

		if stored, err := tables.Instances.Get(t.Context(), db.Reader(), moving.ID); err != nil || stored.GlobalAccountID != "first" {
			t.Errorf("the instance was moved: %+v %v", stored, err)
		}
	})
}

// TestLateWriteOfFrozenReplicaChangesNothing writes to the row of an instance after the operation has ended on
// another replica. Such a write could discard an existing runtime or restore a removed one.
func TestLateWriteOfFrozenReplicaChangesNothing(t *testing.T) {
	type effect func(rows service.Rows, instance environment.Instance) process.Effect

	effects := map[string]effect{
		"SetRuntime": nil,
		"Suspend": func(rows service.Rows, instance environment.Instance) process.Effect {
			return rows.Suspend(process.Record{ID: "former"}, instance, nil, []string{"Remove_Runtime"})
		},
		"Resume": func(rows service.Rows, instance environment.Instance) process.Effect { return rows.Resume(instance) },
		"Update": func(rows service.Rows, instance environment.Instance) process.Effect {
			change := environment.UnchangedUpdate(instance)
			change.GlobalAccountID = "former"

			return rows.Update(instance, change)
		},
		"Delete": func(rows service.Rows, instance environment.Instance) process.Effect {
			return rows.Delete(process.Record{ID: "former"}, instance, []string{"EDP_Deregistration"})
		},
	}

	// write performs the late write of a replica.
	write := func(t *testing.T, made effect, rows service.Rows, ops *operations.Store, late process.Progress, instance environment.Instance) {
		t.Helper()

		if made == nil {
			if err := rows.SetRuntime(t.Context(), late.Record, instance, "former"); err != nil {
				t.Error(err)
			}

			if err := rows.SetDashboardURL(t.Context(), late.Record, instance, "former"); err != nil {
				t.Error(err)
			}

			return
		}

		late.Effect = made(rows, instance)

		if _, err := ops.Save(t.Context(), late); !errors.Is(err, process.ErrLeaseLost) {
			t.Errorf("a late write gives %v, want ErrLeaseLost", err)
		}
	}

	for name, made := range effects {
		t.Run(name, func(t *testing.T) {
			storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
				tables := openTables(t, db)
				ops, store := tables.Operations, tables.Instances

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

				write(t, made, service.NewRows(tables, clock.RealClock{}), ops, ended, instance)

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
