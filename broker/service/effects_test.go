package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// openAccess implements RuntimeAccess and succeeds for every runtime.
type openAccess struct{}

func (openAccess) Probe(context.Context, environment.Instance) error { return nil }

func (openAccess) ApplyServiceManager(context.Context, environment.Instance, environment.ServiceManager) error {
	return nil
}

func (openAccess) RemoveServiceInstances(context.Context, environment.Instance, bool) (int, error) {
	return 0, nil
}

func (openAccess) AdminKubeconfig(context.Context, environment.Instance) (secret.String, error) {
	return "kubeconfig", nil
}

func (openAccess) Grant(_ context.Context, _ environment.Instance, granted environment.Binding) (environment.Access, error) {
	return environment.Access{Kubeconfig: "kubeconfig", Server: "https://api.example.com", ExpiresAt: granted.ExpiresAt}, nil
}

func (openAccess) Revoke(context.Context, environment.Instance, environment.Binding) error {
	return nil
}

// shownRows contains the states that platforms see of an instance and its binding. An empty state means that there is no row.
type shownRows struct {
	Account, Runtime string
	Instances        int
	Suspended        bool
	Binding          environment.BindingState
	Kubeconfig       string
}

// TestResultsAppearWithTheEnd runs the last stage of each process that changes the rows of an instance or a binding. Before
// the end of the operation is stored, the rows must not have changed; afterwards they must.
func TestResultsAppearWithTheEnd(t *testing.T) {
	before := shownRows{Account: "account", Runtime: "runtime", Instances: 1, Binding: environment.BindingReady, Kubeconfig: "kubeconfig"}
	with := func(change func(*shownRows)) shownRows {
		changed := before
		change(&changed)

		return changed
	}

	cases := map[string]struct {
		reason      string
		start, want shownRows
	}{
		environment.KindUpdate: {"the instance moves to another account", before, with(func(r *shownRows) { r.Account = "other" })},
		environment.KindSuspend: {
			"the instance has no runtime, and the rest of the update is applied", before,
			with(func(r *shownRows) { r.Suspended, r.Runtime, r.Account = true, "", "other" }),
		},
		environment.KindResume:      {"the instance has a runtime again", with(func(r *shownRows) { r.Suspended = true }), before},
		environment.KindDeprovision: {"the instance is gone with its binding", before, shownRows{}},
		environment.KindBind: {
			"the credentials are visible", with(func(r *shownRows) { r.Binding, r.Kubeconfig = environment.BindingCreating, "" }), before,
		},
		environment.KindUnbind: {
			"the binding is gone", with(func(r *shownRows) { r.Binding = environment.BindingDeleting }),
			with(func(r *shownRows) { r.Binding, r.Kubeconfig = "", "" }),
		},
	}

	for kind, c := range cases {
		t.Run(kind, func(t *testing.T) {
			storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
				f := newEffectsFixture(t, db)
				f.insert(c.start)

				if diff := cmp.Diff(c.start, f.shown()); diff != "" {
					t.Fatalf("at the start -want +got\n%s", diff)
				}

				ended := f.runLastStage(kind)

				if diff := cmp.Diff(c.start, f.shown()); diff != "" {
					t.Errorf("%s before the operation has ended -want +got\n%s", c.reason, diff)
				}

				if state, err := f.operations.Save(t.Context(), ended); state != process.Succeeded || err != nil {
					t.Fatalf("the operation ends as %q, %v", state, err)
				}

				if diff := cmp.Diff(c.want, f.shown()); diff != "" {
					t.Errorf("%s with the end of the operation -want +got\n%s", c.reason, diff)
				}
			})
		})
	}
}

type effectsFixture struct {
	*testing.T

	db         *storage.DB
	tables     service.Tables
	operations *operations.Store
	instances  *instances.Store
	bindings   *bindings.Store
	instance   environment.Instance
	binding    environment.Binding
}

func newEffectsFixture(t *testing.T, db *storage.DB) *effectsFixture {
	t.Helper()

	f, now := &effectsFixture{T: t, db: db, tables: openTables(t, db)}, storage.At(time.Now()).Time
	f.operations, f.instances, f.bindings = f.tables.Operations, f.tables.Instances, f.tables.Bindings

	f.instance = environment.Instance{ID: "one", PlanName: "trial", ShootName: "c-one", GlobalAccountID: "account", CreatedAt: now, UpdatedAt: now}
	f.binding = environment.Binding{
		ID: "row", InstanceID: "one", BindingID: "b", RuntimeID: "runtime", Role: environment.RoleView, Lifetime: time.Hour,
		OperationID: "operation", CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}

	return f
}

func (f *effectsFixture) insert(rows shownRows) {
	f.Helper()

	f.instance.RuntimeID, f.instance.Suspended = rows.Runtime, rows.Suspended
	f.binding.State, f.binding.Access.Kubeconfig = rows.Binding, "kubeconfig"

	if rows.Binding == environment.BindingCreating {
		f.binding.Access.Kubeconfig = ""
	}

	if err := f.db.InTx(f.Context(), func(tx storage.Tx) error {
		return errors.Join(storagetest.Insert(f.Context(), tx, f.instances, f.instance),
			f.instances.Update(f.Context(), tx, f.instance), f.bindings.Insert(f.Context(), tx, f.binding))
	}); err != nil {
		f.Fatal(err)
	}
}

func (f *effectsFixture) shown() shownRows {
	f.Helper()

	var rows shownRows

	instance, err := f.instances.Get(f.Context(), f.db.Reader(), f.instance.ID)
	if err == nil {
		rows.Instances, rows.Account, rows.Runtime, rows.Suspended = 1, instance.GlobalAccountID, instance.RuntimeID, instance.Suspended
	} else if !errors.Is(err, storage.ErrNotFound) {
		f.Fatal(err)
	}

	binding, err := f.bindings.Get(f.Context(), f.db.Reader(), f.instance.ID, f.binding.BindingID)
	if err == nil {
		rows.Binding, rows.Kubeconfig = binding.State, binding.Access.Kubeconfig.Reveal()
	} else if !errors.Is(err, storage.ErrNotFound) {
		f.Fatal(err)
	}

	return rows
}

// runLastStage claims an operation of the given kind, runs the last stage of its process, and returns the write that ends it.
func (f *effectsFixture) runLastStage(kind string) process.Progress {
	f.Helper()

	key, update := f.instance.ID, environment.UnchangedUpdate(f.instance)
	if kind == environment.KindBind || kind == environment.KindUnbind {
		key = environment.BindingKey(f.instance.ID, f.binding.BindingID)
	}

	update.GlobalAccountID = "other"

	record := storagetest.Hold(f, f.db, f.operations, kind, key)
	operation := process.NewOperation(record, environment.Data{Instance: f.instance, Binding: f.binding, Update: &update}, time.Now())

	for _, each := range service.Processes(service.DefaultConfig(), service.Parts{
		Rows: service.NewRows(f.tables, clock.RealClock{}), Access: openAccess{},
	}) {
		if each.Kind != kind {
			continue
		}

		for _, task := range each.Stages[len(each.Stages)-1].Steps {
			var err error
			if operation, _, err = task.Step.Run(f.Context(), operation, logging.Discard()); err != nil {
				f.Fatal(err)
			}
		}
	}

	record.State, record.Payload = process.Succeeded, json.RawMessage(`{}`)

	return process.Progress{Record: record, Release: true, Now: time.Now(), Effect: operation.Effect}
}
