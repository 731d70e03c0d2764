package broker_test

import (
	"context"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/environment-broker/environment-broker/broker"
	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/estimate"
	"github.com/environment-broker/environment-broker/broker/expiry"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/resources"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

const (
	serviceID = "47c9dcbf-ff30-448e-ab36-d3bad66ba281"
	planAWS   = "361c511f-f939-4621-b228-d0fb79a1fe15"
	planAzure = "4deee563-e5ec-4731-b9b1-53b42d855f0c"
	planGCP   = "ca6e5357-707f-4565-bbbd-b3ab732597c6"
	planTrial = "7d55d31d-35ae-4438-bf13-6ffdfa107d9f"

	user, password = "platform", "s3cret"

	instanceID = "0f5b2c7e-1111-4222-8333-444455556666"
	identity   = "4f8d1c9e-0000-4000-8000-0123456789ab"
	ids        = "&service_id=" + serviceID + "&plan_id=" + planAWS
)

// fixture is a broker that serves HTTP. No engine runs; the tests run the operations themselves.
type fixture struct {
	*testing.T

	address    string
	options    broker.Options
	instances  *instances.Store
	operations *operations.Store
	bindings   *bindings.Store
	leftovers  *leftovers.Store
	objects    *outsideobjects.Store
	accounts   *accounts
	entries    *auditlog.Store
	clock      *clocktesting.FakePassiveClock
	log        *logtest.Hook
	wakes      atomic.Int64
	// faulty allows responses with a status of 500 or above, which otherwise fail the test.
	faulty bool
}

// newFixture starts a broker with a new SQLite file. The optional functions change its options.
func newFixture(t *testing.T, change ...func(*broker.Options)) *fixture {
	t.Helper()

	return newFixtureOn(t, storagetest.SQLite(t), change...)
}

func onEach(t *testing.T, test func(b *fixture)) {
	t.Helper()
	storagetest.EachDatabase(t, func(t *testing.T, db *storage.DB) { test(newFixtureOn(t, db)) })
}

func newFixtureOn(t *testing.T, db *storage.DB, change ...func(*broker.Options)) *fixture {
	t.Helper()

	b := &fixture{T: t, clock: clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))}

	keys := storagetest.Keys(t)

	var err error
	if b.operations, err = operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if b.instances, err = instances.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if b.bindings, err = bindings.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if b.objects, err = outsideobjects.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if b.leftovers, err = leftovers.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	b.accounts = &accounts{clock: b.clock, roles: map[string]environment.Role{}}

	if b.entries, err = auditlog.Open(t.Context(), db, time.Hour); err != nil {
		t.Fatal(err)
	}

	offer, err := catalog.Load(resources.Catalog(), catalog.Options{KubernetesVersion: "1.34", OperationTimeout: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}

	users, err := auth.ParseUsers(user + ":" + password + ",watcher:" + password + ":viewer")
	if err != nil {
		t.Fatal(err)
	}

	logger, hook := logtest.NewNullLogger()
	logger.SetLevel(logrus.DebugLevel)

	b.log = hook
	b.options = broker.Options{
		DB: db, Instances: b.instances, Operations: b.operations, Bindings: b.bindings, Leftovers: b.leftovers, Objects: b.objects, Catalog: offer,
		BindingLimit: 10, Pause: b.runBindings, Wake: func() { b.wakes.Add(1) },
		Clock: b.clock, Log: logger, Recorder: audit.NewRecorder(b.entries, db, b.clock, logger), Authorizer: auth.NewAuthorizer(users), DefaultRegion: "cf-eu10",
		DashboardURL: "https://dashboard.example.com/?kubeconfigID={instance_id}", PublicURL: "https://broker.example.com/",
		Periods: expiry.Periods{"trial": 14 * 24 * time.Hour}, Estimator: estimate.New(b.instances, b.operations),
	}

	for _, apply := range change {
		apply(&b.options)
	}

	b.restart()
	t.Cleanup(func() { b.checkAudited(db) })

	return b
}

// restart starts another server with the current options. Later requests go to the new server.
func (b *fixture) restart() {
	b.Helper()

	server := httptest.NewServer(broker.NewHandler(b.options))
	b.Cleanup(server.Close)

	b.address = server.URL
}

// checkAudited fails the test if an accepted operation has no entry in the audit log.
func (b *fixture) checkAudited(db *storage.DB) {
	b.Helper()

	unknown, err := storage.Select[string](context.Background(), db.Reader(), `SELECT kind FROM operations
		WHERE audit = '' AND NOT EXISTS (SELECT 1 FROM audit WHERE audit.operation_id = operations.id)`)
	if len(unknown) > 0 || err != nil {
		b.Errorf("operations of these kinds have no audit entry: %v, %v", unknown, err)
	}
}

// onRunning runs the test on both databases, with an instance that has a runtime.
func onRunning(t *testing.T, test func(b *fixture)) {
	t.Helper()

	onEach(t, func(b *fixture) {
		b.runs(instanceID)
		test(b)
	})
}

func TestMain(m *testing.M) { postgrestest.MainWithoutLeaks(m) }
