package orders_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/orders"
	"github.com/environment-broker/environment-broker/provisioner/spec"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.MainWithoutLeaks(m) }

const validity = 8 * time.Hour

// fixture is the service with its own database. It also implements the other dependencies of the service, with injected faults.
type fixture struct {
	*testing.T

	service *orders.Service
	db      *storage.DB
	ops     *operations.Store
	store   *runtimes.Store
	entries *auditlog.Store

	checkError      atomic.Pointer[failure.Error] // returned by Check
	wakes           atomic.Int64                  // number of calls to Wake
	kubeconfigError error                         // returned by AdminKubeconfig
	shoot           gardencorev1beta1.Shoot       // the Shoot of each runtime in the database
	lost            *gardencorev1beta1.Shoot      // a Shoot that no runtime in the database owns, or nil
	getError        error                         // returned by Get and OfRuntime
	foreign         map[string]string             // names of Shoots by the ID of a runtime
	planError       error                         // returned by Plan
	recordError     error                         // returned by RecordAlone
	requested       []string                      // name and validity of the requested kubeconfigs
	connection      agent.Status
	statusCalls     int // number of calls to Status
}

func (f *fixture) AdminKubeconfig(_ context.Context, shootName string, valid time.Duration) ([]byte, error) {
	f.requested = append(f.requested, shootName+" "+valid.String())

	return []byte("kubeconfig of " + shootName), f.kubeconfigError
}

func (f *fixture) Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error) {
	if f.lost != nil && f.lost.Name == name {
		return f.lost, f.getError
	}

	if _, err := f.store.OfShoot(ctx, f.store.Reader(), name); f.getError == nil && errors.Is(err, storage.ErrNotFound) {
		return nil, failure.New(failure.NotFound, "no such Shoot")
	}

	return &f.shoot, f.getError
}

func (f *fixture) Plan(_ context.Context, order spec.Kyma) (installation.Plan, error) {
	return installation.Plan{Version: order.Version}, f.planError
}

func (f *fixture) Status(context.Context, runtimes.Runtime) agent.Status {
	f.statusCalls++

	return f.connection
}

func (f *fixture) RecordAlone(ctx context.Context, entry auditlog.Entry) error {
	if f.recordError != nil {
		return f.recordError
	}

	return audit.NewRecorder(f.entries, f.db, clock.RealClock{}, logging.Discard()).RecordAlone(ctx, entry)
}

func (f *fixture) Record(ctx context.Context, tx storage.Tx, entry auditlog.Entry) error {
	return audit.NewRecorder(f.entries, f.db, clock.RealClock{}, logging.Discard()).Record(ctx, tx, entry)
}

func newFixture(t *testing.T, db *storage.DB) *fixture {
	t.Helper()

	keys := storagetest.Keys(t)

	ops, err := operations.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	store, err := runtimes.Open(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}

	entries, err := auditlog.Open(t.Context(), db, 0)
	if err != nil {
		t.Fatal(err)
	}

	f := &fixture{
		T: t, db: db, ops: ops, store: store, entries: entries,
		connection: agent.Status{State: agent.StatusPending},
	}
	f.service = orders.New(orders.Options{
		DB: db, Operations: ops, Runtimes: store, Kubeconfigs: f, Shoots: f, Agents: f, Releases: f, Recorder: f, Clock: clock.RealClock{}, KubeconfigValidity: validity,
		Wake:      func() { f.wakes.Add(1) },
		OfRuntime: func(_ context.Context, runtimeID string) (string, error) { return f.foreign[runtimeID], f.getError },
		Check: func(runtimes.Runtime) error {
			if refused := f.checkError.Load(); refused != nil {
				return refused
			}

			return nil
		},
	})

	return f
}

func onBothDatabases(t *testing.T, test func(f *fixture)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()
		test(newFixture(t, db))
	})
}

func order(name string) spec.Runtime {
	return spec.Runtime{
		Metadata:      &spec.Metadata{Name: name},
		ClusterConfig: &spec.ClusterConfig{GardenerConfig: &spec.Cluster{Name: name, Provider: "aws", TargetSecret: "hush"}},
	}
}

func caller(tenant, key string) orders.Caller {
	return orders.Caller{Tenant: tenant, SubAccount: "sub", IdempotencyKey: key}
}

// provision orders a runtime and returns the IDs of the operation and of the runtime.
func (f *fixture) provision(tenant, key, name string) (operationID, runtimeID string) {
	f.Helper()

	status, err := f.service.Provision(f.Context(), caller(tenant, key), order(name))
	if err != nil {
		f.Fatal(err)
	}

	return status.ID, status.RuntimeID
}

func (f *fixture) deprovision(tenant, key, runtimeID string) string {
	f.Helper()

	id, err := f.service.Deprovision(f.Context(), caller(tenant, key), runtimeID)
	if err != nil {
		f.Fatal(err)
	}

	return id
}

// claimDue claims all due operations, as the engine does, and returns their records by ID.
func (f *fixture) claimDue() map[string]process.Record {
	f.Helper()

	now := time.Now()

	claimed := storagetest.Claim(f, f.ops, process.Claim{
		Owner: "replica", Limit: 5000,
		Now: now, Until: now.Add(time.Hour),
	}, append(operation.Kinds(), "bulk")...)

	records := map[string]process.Record{}
	for _, work := range claimed {
		records[work.Record.ID] = work.Record
	}

	return records
}

// end ends a claimed operation in the given state.
func (f *fixture) end(record process.Record, state process.State) {
	f.Helper()

	record.State, record.FinishedAt = state, time.Now()
	if state == process.Failed {
		record.Problem = process.Problem{Message: "no quota", Reason: "ERR_QUOTA", Component: "gardener"}
	}

	if _, err := f.ops.Save(f.Context(), process.Progress{Record: record, Release: true, Now: record.FinishedAt}); err != nil {
		f.Fatal(err)
	}
}

// finish claims an operation and ends it in the given state.
func (f *fixture) finish(operationID string, state process.State) {
	f.Helper()

	record, due := f.claimDue()[operationID]
	if !due {
		f.Fatalf("operation %s is not due", operationID)
	}

	f.end(record, state)
}

func (f *fixture) state(operationID string) process.State {
	f.Helper()

	record, err := f.ops.Get(f.Context(), f.ops.Reader(), operationID)
	if err != nil {
		f.Fatal(err)
	}

	return record.State
}

func (f *fixture) count(table string) int {
	f.Helper()

	count, err := storage.Get[int](f.Context(), f.db.Reader(), `SELECT count(*) FROM `+table)
	if err != nil {
		f.Fatal(err)
	}

	return count
}

// concurrently runs the call for eight callers at the same time and returns their results and errors.
func concurrently(call func(caller string) (string, error)) (results []string, errs []error) {
	const callers = 8

	results, errs = make([]string, callers), make([]error, callers)

	var running sync.WaitGroup

	for i := range callers {
		running.Go(func() { results[i], errs[i] = call(strconv.Itoa(i)) })
	}

	running.Wait()

	return results, errs
}

func decode(t *testing.T, text []byte) spec.Runtime {
	t.Helper()

	var input spec.Runtime
	if err := json.Unmarshal(text, &input); err != nil {
		t.Fatal(err)
	}

	return input
}
