package service_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

// retained has the tables of a broker whose operations have all ended long ago.
type retained struct {
	*testing.T

	tables  service.Tables
	entries *auditlog.Store
	at      time.Time
}

func openRetained(t *testing.T, db *storage.DB) *retained {
	t.Helper()

	r := &retained{T: t, tables: openTables(t, db), at: time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)}
	r.tables.Operations.KeepFor(time.Hour)

	var errs [2]error

	r.tables.Orchestrations, errs[0] = orchestrations.Open(t.Context(), db, r.tables.Operations)
	r.entries, errs[1] = auditlog.Open(t.Context(), db, time.Hour)

	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}

	return r
}

func (r *retained) tx(work func(tx storage.Tx) error) {
	r.Helper()

	if err := r.tables.DB.InTx(r.Context(), work); err != nil {
		r.Fatal(err)
	}
}

// operation inserts an ended operation, whose ID consists of the name and the kind. Each operation is a minute newer than the one
// before.
func (r *retained) operation(name, key, kind string, state process.State) string {
	r.Helper()

	id := name + ":" + kind
	r.at = r.at.Add(time.Minute)

	r.tx(func(tx storage.Tx) error {
		return r.tables.Operations.InsertEnded(r.Context(), tx, process.New{ID: id, Kind: kind, InstanceID: key, Payload: []byte(`{}`), At: r.at},
			operations.Ending{State: state, At: r.at, Began: r.at})
	})

	return id
}

func (r *retained) instance(id string) {
	r.Helper()
	r.tx(func(tx storage.Tx) error {
		return storagetest.Insert(r.Context(), tx, r.tables.Instances, environment.Instance{ID: id, Name: id, ShootName: "shoot-" + id, CreatedAt: r.at, UpdatedAt: r.at})
	})
}

// sweep removes old timelines, adds audit entries to the chain, and removes old operations. It returns the IDs of the remaining
// operations, oldest first.
func (r *retained) sweep() string {
	r.Helper()

	clock := clocktesting.NewFakeClock(r.at.AddDate(1, 0, 0))
	chainer := r.entries.Chain(auditlog.ChainOptions{Clock: clock, Log: logging.Discard(), Metrics: prometheus.NewRegistry()})

	for _, work := range []func() error{
		func() error {
			return r.tables.Operations.Retention(time.Hour, clock, logging.Discard()).Sweep(r.Context())
		},
		func() error { return chainer.Pass(r.Context()) },
		func() error {
			return r.entries.OperationRetention(service.NewRemoval(r.tables), clock, logging.Discard()).Sweep(r.Context())
		},
	} {
		if err := work(); err != nil {
			r.Fatal(err)
		}
	}

	ids, err := storage.Select[string](r.Context(), r.tables.DB.Reader(), `SELECT id FROM operations ORDER BY created_at`)
	if err != nil {
		r.Fatal(err)
	}

	return strings.Join(ids, " ")
}

// TestOperationsThatTheBrokerNeedsStay inserts operations that are all old enough to be removed.
func TestOperationsThatTheBrokerNeedsStay(t *testing.T) {
	const ok, failed = process.Succeeded, process.Failed

	for name, test := range map[string]struct {
		reason string
		insert func(r *retained)
		want   string
	}{
		"Gone": {"of an instance that was deleted, nothing stays", func(r *retained) {
			r.operation("1", "one", "provision", ok)
			r.operation("2", "one", "deprovision", ok)
		}, ""},
		"Present": {"the runtime of an instance, its newest operation, and the newest one of the platform stay", func(r *retained) {
			r.instance("one")
			r.operation("1", "one", "provision", ok)
			r.operation("2", "one", "update", ok)
			r.operation("3", "one", "suspend", ok)
			r.operation("4", "one", "resume", ok)
			r.operation("5", "one", "upgradeKyma", ok)
			r.operation("6", "one", "update", failed)
			r.operation("7", "one", "upgradeKyma", ok)
			r.operation("8", "one", "upgradeCluster", ok)
		}, "1:provision 3:suspend 4:resume 6:update 8:upgradeCluster"},
		"DeletionFailed": {"the newest failed deletion stays, so that the instance does not look active", func(r *retained) {
			r.instance("one")
			r.operation("1", "one", "provision", ok)
			r.operation("2", "one", "deprovision", failed)
			r.operation("3", "one", "deprovision", failed)
			r.operation("4", "one", "update", failed)
			r.operation("5", "one", "update", failed)
		}, "1:provision 3:deprovision 5:update"},
		"Reused": {"nothing stays of an earlier instance with the same ID", func(r *retained) {
			r.instance("one")
			r.operation("1", "one", "provision", ok)
			r.operation("2", "one", "deprovision", ok)
			r.operation("3", "one", "provision", ok)
		}, "3:provision"},
		"Leftover": {"a cleanup uses the data of the deletion", func(r *retained) {
			r.operation("1", "one", "provision", ok)
			id := r.operation("2", "one", "deprovision", ok)
			r.tx(func(tx storage.Tx) error {
				return r.tables.Leftovers.Add(r.Context(), tx, environment.Leftover{
					ID: id, Kind: "deprovision", Instance: environment.Instance{ID: "one"}, DataID: id, NewestID: id, DeletedAt: r.at, RetryAt: r.at,
				})
			})
			r.operation("3", environment.LeftoverKey("one", id), "cleanup", failed)
			r.operation("4", environment.LeftoverKey("one", "earlier"), "cleanup", ok)
		}, "1:provision 2:deprovision 3:cleanup"},
		"Object": {"an erasure finds the objects of a deleted instance by its operations", func(r *retained) {
			r.operation("1", "one", "provision", ok)
			r.tx(func(tx storage.Tx) error {
				return r.tables.Objects.Insert(r.Context(), tx, environment.OutsideObject{
					InstanceID: "one", System: environment.SystemEDP, Kind: environment.KindDataTenant, Key: "k", State: environment.OutsideCreated,
				}, r.at)
			})
		}, "1:provision"},
		"Binding": {"the operations of a binding stay as long as the binding", func(r *retained) {
			r.instance("one")
			r.operation("1", "one", "provision", ok)
			id := r.operation("2", environment.BindingKey("one", "there"), "bind", ok)
			r.tx(func(tx storage.Tx) error {
				return r.tables.Bindings.Insert(r.Context(), tx, environment.Binding{
					ID: "b", InstanceID: "one", BindingID: "there", OperationID: id, State: environment.BindingCreating, Role: environment.RoleEdit,
					CreatedAt: r.at, ExpiresAt: r.at,
				})
			})
			r.operation("3", environment.BindingKey("one", "gone"), "bind", ok)
			r.operation("4", environment.BindingKey("one", "gone"), "unbind", ok)
		}, "1:provision 2:bind"},
		"Orchestrations": {"an orchestration that has not ended needs its conductors and upgrades", func(r *retained) {
			for _, each := range []struct {
				id    string
				state environment.OrchestrationState
			}{{"ended", environment.OrchestrationSucceeded}, {"paused", environment.OrchestrationPaused}} {
				r.operation("conductor of "+each.id, environment.OrchestrationKey(each.id), "orchestrate", ok)
				upgrade := r.operation("upgrade of "+each.id, "instance of "+each.id, "upgradeKyma", ok)
				r.tx(func(tx storage.Tx) error {
					return errors.Join(
						r.tables.Orchestrations.Insert(r.Context(), tx, environment.Orchestration{
							ID: each.id, Kind: "upgradeKyma", State: each.state, Parameters: fleet.Parameters{}, CreatedAt: r.at, UpdatedAt: r.at, Wave: 1,
						}),
						r.tables.Orchestrations.AddTargets(r.Context(), tx, []environment.Target{{
							OrchestrationID: each.id, InstanceID: "instance of " + each.id, OperationID: upgrade, State: environment.TargetInProgress, NotBefore: r.at,
						}}))
				})
			}
		}, "conductor of paused:orchestrate upgrade of paused:upgradeKyma"},
	} {
		t.Run(name, func(t *testing.T) {
			storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
				r := openRetained(t, db)
				test.insert(r)

				if diff := cmp.Diff(test.want, r.sweep()); diff != "" {
					t.Errorf("%s: -want +got\n%s", test.reason, diff)
				}
			})
		})
	}
}
