package orders_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"go.uber.org/goleak"
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

func TestMain(m *testing.M) { postgrestest.Main(leakless{m}) }

// leakless fails if the tests leak goroutines.
type leakless struct{ *testing.M }

func (l leakless) Run() int {
	code := l.M.Run()

	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)

		return 1
	}

	return code
}

const validity = 8 * time.Hour

// bench is the service with a database of its own. It implements the service's other dependencies with injected faults.
type bench struct {
	*testing.T

	service *orders.Service
	db      *storage.DB
	ops     *operations.Store
	store   *runtimes.Store
	entries *auditlog.Store

	refused    atomic.Pointer[failure.Error] // the error of Check
	woken      atomic.Int64
	kubeconfig error
	shoot      gardencorev1beta1.Shoot
	unread     error    // the error of Get
	unplanned  error    // the error of Plan
	unwritten  error    // the error of RecordAlone
	asked      []string // the requested kubeconfigs
	connection agent.Status
	looked     int // the number of calls of Status
}

// AdminKubeconfig implements orders.Kubeconfigs.
func (b *bench) AdminKubeconfig(_ context.Context, shootName string, valid time.Duration) ([]byte, error) {
	b.asked = append(b.asked, shootName+" "+valid.String())

	return []byte("kubeconfig of " + shootName), b.kubeconfig
}

// Get implements orders.Shoots.
func (b *bench) Get(context.Context, string) (*gardencorev1beta1.Shoot, error) {
	return &b.shoot, b.unread
}

// Plan implements installation.Releases.
func (b *bench) Plan(_ context.Context, order spec.Kyma) (installation.Plan, error) {
	return installation.Plan{Version: order.Version}, b.unplanned
}

// Status implements orders.Agents.
func (b *bench) Status(context.Context, runtimes.Runtime) agent.Status {
	b.looked++

	return b.connection
}

// RecordAlone implements orders.Recorder.
func (b *bench) RecordAlone(ctx context.Context, entry auditlog.Entry) error {
	if b.unwritten != nil {
		return b.unwritten
	}

	return audit.NewRecorder(b.entries, b.db, clock.RealClock{}, logging.Discard()).RecordAlone(ctx, entry)
}

func newBench(t *testing.T, db *storage.DB) *bench {
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

	b := &bench{
		T: t, db: db, ops: ops, store: store, entries: entries,
		connection: agent.Status{State: agent.StatusPending},
	}
	b.service = orders.New(orders.Options{
		DB: db, Operations: ops, Runtimes: store, Kubeconfigs: b, Shoots: b, Agents: b, Releases: b, Recorder: b, Clock: clock.RealClock{}, KubeconfigValidity: validity,
		Wake: func() { b.woken.Add(1) },
		Check: func(runtimes.Runtime) error {
			if refused := b.refused.Load(); refused != nil {
				return refused
			}

			return nil
		},
	})

	return b
}

// each runs the test on both databases.
func each(t *testing.T, test func(b *bench)) {
	t.Helper()

	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) {
		t.Helper()
		test(newBench(t, db))
	})
}

// order returns an order for a cluster with the name.
func order(name string) spec.Runtime {
	return spec.Runtime{
		Metadata:      &spec.Metadata{Name: name},
		ClusterConfig: &spec.ClusterConfig{GardenerConfig: &spec.Cluster{Name: name, Provider: "aws", TargetSecret: "hush"}},
	}
}

func caller(tenant, key string) orders.Caller {
	return orders.Caller{Tenant: tenant, SubAccount: "sub", IdempotencyKey: key}
}

// provision orders a cluster and returns the ids of its operation and runtime.
func (b *bench) provision(tenant, key, name string) (operationID, runtimeID string) {
	b.Helper()

	status, err := b.service.Provision(b.Context(), caller(tenant, key), order(name))
	if err != nil {
		b.Fatal(err)
	}

	return status.ID, status.RuntimeID
}

func (b *bench) deprovision(tenant, key, runtimeID string) string {
	b.Helper()

	id, err := b.service.Deprovision(b.Context(), caller(tenant, key), runtimeID)
	if err != nil {
		b.Fatal(err)
	}

	return id
}

// begin claims all due operations, as a replica does, and returns them by id.
func (b *bench) begin() map[string]process.Record {
	b.Helper()

	now := time.Now()

	claimed := storagetest.Claim(b, b.ops, process.Claim{
		Owner: "replica", Limit: 5000,
		Now: now, Until: now.Add(time.Hour),
	}, operation.KindProvision, operation.KindProvisionNoInstall, operation.KindDeprovision, operation.KindDeprovisionNoInstall,
		operation.KindUpgradeShoot, operation.KindHibernate, operation.KindWakeUp, operation.KindUpgrade, operation.KindRollBack,
		operation.KindReconnectRuntime, "bulk")

	records := map[string]process.Record{}
	for _, work := range claimed {
		records[work.Record.ID] = work.Record
	}

	return records
}

// end ends a claimed operation.
func (b *bench) end(record process.Record, state process.State) {
	b.Helper()

	record.State, record.FinishedAt = state, time.Now()
	if state == process.Failed {
		record.Problem = process.Problem{Message: "no quota", Reason: "ERR_QUOTA", Component: "gardener"}
	}

	if _, err := b.ops.Save(b.Context(), process.Progress{Record: record, Release: true, Now: record.FinishedAt}); err != nil {
		b.Fatal(err)
	}
}

// finish claims an operation and ends it.
func (b *bench) finish(operationID string, state process.State) {
	b.Helper()

	record, due := b.begin()[operationID]
	if !due {
		b.Fatalf("operation %s is not due", operationID)
	}

	b.end(record, state)
}

func (b *bench) state(operationID string) process.State {
	b.Helper()

	record, err := b.ops.Get(b.Context(), b.ops.Reader(), operationID)
	if err != nil {
		b.Fatal(err)
	}

	return record.State
}

func (b *bench) count(table string) int {
	b.Helper()

	count, err := storage.Get[int](b.Context(), b.db.Reader(), `SELECT count(*) FROM `+table)
	if err != nil {
		b.Fatal(err)
	}

	return count
}

// together runs the call concurrently for many callers and returns the results and errors by caller.
func together(call func(caller string) (string, error)) (results []string, errs []error) {
	const callers = 8

	results, errs = make([]string, callers), make([]error, callers)

	var running sync.WaitGroup

	for i := range callers {
		running.Go(func() { results[i], errs[i] = call(strconv.Itoa(i)) })
	}

	running.Wait()

	return results, errs
}

// decode decodes the stored order of a runtime.
func decode(t *testing.T, text []byte) spec.Runtime {
	t.Helper()

	var input spec.Runtime
	if err := json.Unmarshal(text, &input); err != nil {
		t.Fatal(err)
	}

	return input
}
