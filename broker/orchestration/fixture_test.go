package orchestration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/operator"
	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/orchestrating"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

const (
	planAWS     = "361c511f-f939-4621-b228-d0fb79a1fe15"
	planPreview = "5cb3d976-b85c-42ea-a636-79cadda109a9"
)

// fixture is a Conductor and Orders with their stores. Its upgrades take upgradeTime, and fail for the instances in failing.
type fixture struct {
	*testing.T
	orchestration.Conductor
	orchestration.Orders

	db          *storage.DB
	operations  *operations.Store
	entries     *auditlog.Store
	clock       clock.PassiveClock
	upgradeTime time.Duration
	failing     map[string]bool
	// mutex guards the maps: the upgrades of a replica run at the same time.
	mutex sync.Mutex
	// most is the maximum number of upgrades that were unfinished at the same time: in total, by region and by provider.
	most map[string]int
}

func newFixture(t *testing.T, db *storage.DB, clock clock.PassiveClock) *fixture {
	t.Helper()

	keys := storagetest.Keys(t)
	f := &fixture{T: t, db: db, clock: clock, upgradeTime: time.Minute, failing: map[string]bool{}, most: map[string]int{}}

	var (
		err   error
		rows  *instances.Store
		store *orchestrations.Store
	)

	if f.operations, err = operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if rows, err = instances.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if store, err = orchestrations.Open(t.Context(), db, f.operations); err != nil {
		t.Fatal(err)
	}

	if f.entries, err = auditlog.Open(t.Context(), db, time.Hour); err != nil {
		t.Fatal(err)
	}

	plans, err := catalog.Load(resources.Catalog(), catalog.Options{KubernetesVersion: "1.35", OperationTimeout: time.Hour, KymaVersion: "2.0.0"})
	if err != nil {
		t.Fatal(err)
	}

	upgrader := upgrade.Upgrader{DB: db, Instances: rows, Operations: f.operations, Catalog: plans, Clock: clock, Wake: func() {}}
	planner := orchestration.Planner{Upgrader: upgrader, StateOf: operator.StateOf, ShootWindows: store.ShootWindows, Upgraded: store.Upgraded}
	f.Conductor = orchestration.Conductor{DB: db, Orchestrations: store, Planner: planner, Clock: clock}
	f.Orders = orchestration.Orders{
		DB: db, Orchestrations: store, Operations: f.operations, Planner: planner, Recorder: audit.NewRecorder(f.entries, db, clock, logging.Discard()),
		Wake: func() {}, Clock: clock,
	}

	return f
}

// tx runs work in a transaction that must succeed.
func (f *fixture) tx(work func(tx storage.Tx) error) {
	f.Helper()

	if err := f.db.InTx(f.Context(), work); err != nil {
		f.Fatal(err)
	}
}

// create stores an instance whose newest operation has the given kind and state.
func (f *fixture) create(id, kind string, state process.State, change func(*environment.Instance)) {
	f.Helper()

	instance := environment.Instance{
		ID: id, PlanID: planAWS, PlanName: "aws", GlobalAccountID: "ga", SubAccountID: "sa", Provider: "aws", Region: "eu-central-1",
		ShootName: "c-" + id, RuntimeID: "runtime-" + id, CreatedAt: f.clock.Now(), UpdatedAt: f.clock.Now(),
		Request: environment.Request{Cluster: environment.Cluster{KubernetesVersion: "1.34.2"}},
	}
	change(&instance)

	f.tx(func(tx storage.Tx) error {
		return storagetest.Insert(f.Context(), tx, f.Conductor.Planner.Upgrader.Instances, instance)
	})
	f.accept(kind, instance, state)
}

// accept accepts an operation of the instance, which ends at once if the state is final.
func (f *fixture) accept(kind string, instance environment.Instance, state process.State) {
	f.Helper()

	operation, err := environment.NewOperation(kind, instance, nil, f.clock.Now())
	if err != nil {
		f.Fatal(err)
	}

	f.tx(func(tx storage.Tx) error { return f.operations.Accept(f.Context(), tx, operation) })

	if !state.Terminal() {
		return
	}

	now := f.clock.Now()

	for _, work := range storagetest.Claim(f, f.operations, process.Claim{Owner: "test", Limit: 100, Now: now, Until: now.Add(time.Minute)}, kind) {
		progress := process.Progress{Record: work.Record, Release: true, Now: now}
		progress.Record.NextRun, progress.Record.State, progress.Record.FinishedAt = now, state, now
		progress.Timeline = []process.Entry{{Began: now, End: now, Outcome: process.Outcome("operation " + string(state))}}

		if _, err := f.operations.Save(f.Context(), progress); err != nil {
			f.Fatal(err)
		}
	}
}

// fill creates instances in two regions of aws and one of gcp.
func (f *fixture) fill(count int) {
	f.Helper()

	for i := range count {
		f.create(fmt.Sprintf("i%05d", i), environment.KindProvision, process.Succeeded, func(instance *environment.Instance) {
			switch i % 4 {
			case 0:
				instance.Provider, instance.Region = "gcp", "europe-west3"
			case 1:
				instance.Region = "us-east-1"
			}
		})
	}
}

// all returns parameters for all instances.
func all(workers int) fleet.Parameters {
	return fleet.Parameters{
		Targets:  fleet.Targets{Include: []fleet.Target{{Target: "all"}}},
		Strategy: fleet.Strategy{Parallel: &fleet.Parallel{Workers: workers}},
	}
}

// order creates an orchestration that upgrades clusters. It returns the IDs of the orchestration and its conductor.
func (f *fixture) order(parameters fleet.Parameters) (id, conductorID string) {
	f.Helper()

	id, err := f.Create(f.Context(), environment.KindUpgradeCluster, parameters)
	if err != nil {
		f.Fatal(err)
	}

	return id, f.conductorOf(id)
}

// conductorOf returns the ID of the newest conductor.
func (f *fixture) conductorOf(id string) string {
	f.Helper()

	newest, err := f.operations.Latest(f.Context(), f.db.Reader(), environment.OrchestrationKey(id), environment.KindOrchestrate)
	if err != nil {
		f.Fatal(err)
	}

	return newest.ID
}

// upgrades returns the process of the upgrades: a step that waits for upgradeTime and counts the upgrades that are unfinished.
func (f *fixture) upgrades() process.Process[environment.Data] {
	return process.Process[environment.Data]{
		Kind: environment.KindUpgradeCluster, Limit: 24 * time.Hour,
		Stages: []process.Stage[environment.Data]{{Name: "upgrade", Retry: process.DefaultRetry(), Steps: process.Steps(process.StepFunc("Upgrade",
			func(ctx context.Context, operation process.Operation[environment.Data], _ logrus.FieldLogger) (process.Operation[environment.Data], time.Duration, error) {
				if err := f.count(ctx); err != nil {
					return operation, 0, failure.Wrap(failure.Transient, err, "counting")
				}

				if operation.Now().Sub(operation.StartedAt) < f.upgradeTime {
					return process.Await(operation, "upgrading", f.upgradeTime, time.Hour)
				}

				if f.fails(operation.InstanceID) {
					return operation, 0, failure.New(failure.Permanent, "no capacity")
				}

				return operation, 0, nil
			}))}},
	}
}

// fails reports whether upgrades of the instance fail.
func (f *fixture) fails(instanceID string) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()

	return f.failing[instanceID]
}

// setFailing makes upgrades of the instance fail or succeed.
func (f *fixture) setFailing(instanceID string, failing bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()

	f.failing[instanceID] = failing
}

// count updates most with the upgrades that are unfinished now.
func (f *fixture) count(ctx context.Context) error {
	var failed []error

	for _, group := range []string{"''", "region", "provider"} {
		counts, err := storage.Select[int](ctx, f.db.Reader(), `SELECT count(*) FROM operations JOIN instances ON instances.id = instance_id
			WHERE kind = 'upgradeCluster' AND state IN ('pending', 'in progress', 'canceling') GROUP BY `+group)
		failed = append(failed, err)

		f.mutex.Lock()

		for _, count := range counts {
			f.most[group] = max(f.most[group], count)
		}

		f.mutex.Unlock()
	}

	return errors.Join(failed...)
}

// processes returns the processes of a broker that runs orchestrations.
func (f *fixture) processes(of orchestrating.Orchestrations) []process.Process[environment.Data] {
	return []process.Process[environment.Data]{f.upgrades(), orchestrating.Process(orchestrating.Options{Orchestrations: of})}
}

// wantUpgrades checks that each instance has the given number of upgrades, in any state.
func (f *fixture) wantUpgrades(times int) {
	f.Helper()

	wrong, err := storage.Select[string](f.Context(), f.db.Reader(), `SELECT id FROM instances WHERE ? <> (
		SELECT count(*) FROM operations WHERE kind = 'upgradeCluster' AND instance_id = instances.id)`, times)
	if err != nil || len(wrong) > 0 {
		f.Errorf("instances without exactly %d upgrades: %v, %v", times, wrong, err)
	}
}

// get returns the orchestration with the number of its targets in each state.
func (f *fixture) get(id string) (environment.Orchestration, map[string]int) {
	f.Helper()

	orchestration, err := f.Conductor.Orchestrations.Get(f.Context(), f.db.Reader(), id)
	if err != nil {
		f.Fatal(err)
	}

	stats, err := f.Conductor.Orchestrations.Stats(f.Context(), f.db.Reader(), id)
	if err != nil {
		f.Fatal(err)
	}

	return orchestration, stats
}
