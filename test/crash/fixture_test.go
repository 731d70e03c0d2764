package crash

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
	claims "github.com/environment-broker/environment-broker/storage/accounts"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/eventlog"
	"github.com/environment-broker/environment-broker/storage/instanceevents"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/leftovers"
	"github.com/environment-broker/environment-broker/storage/notifications"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
	"github.com/environment-broker/environment-broker/storage/reports"
	"github.com/environment-broker/environment-broker/storage/runtimes"
	"github.com/environment-broker/environment-broker/storage/storagetest"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// database opens a new database for a scenario.
type database func(tb testing.TB) *storage.DB

func postgres(tb testing.TB) *storage.DB {
	tb.Helper()

	return storagetest.Open(tb, storagetest.Postgres(tb))
}

// expectations reads the expected outcomes of scenarios, by name, from a file in testdata.
func expectations(t *testing.T, file string) map[string]string {
	t.Helper()

	content, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}

	var scenarios map[string]any
	if err := yaml.Unmarshal(content, &scenarios); err != nil {
		t.Fatal(err)
	}

	expected := map[string]string{}

	for name, each := range scenarios {
		outcome, err := yaml.Marshal(each)
		if err != nil {
			t.Fatal(err)
		}

		expected[name] = string(outcome)
	}

	return expected
}

// newGarden opens a fake garden. All scenarios of a test share it, because creating one is slow. Each scenario deletes its objects at
// the end.
func newGarden(t *testing.T) *fakegarden.Memory {
	t.Helper()

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{Dir: storagetest.VolatileDir(t), Log: logging.Discard()})
	if err != nil {
		t.Fatal(err)
	}

	return memory
}

// brokerRows contains the broker's database with its stores.
type brokerRows struct {
	db         *storage.DB
	operations *operations.Store
	instances  *instances.Store
	bindings   *bindings.Store
	claims     *claims.Store
	auditLog   *auditlog.Store
	objects    *outsideobjects.Store
	events     *instanceevents.Store
	leftovers  *leftovers.Store
	eventLog   *eventlog.Store
	messages   *notifications.Store
	reports    *reports.Store

	orchestrations *orchestrations.Store
}

func (r brokerRows) tables() service.Tables {
	return service.Tables{
		DB: r.db, Operations: r.operations, Instances: r.instances, Bindings: r.bindings, Leftovers: r.leftovers, Objects: r.objects,
		Events: r.events,
	}
}

func openBroker(t *testing.T, db *storage.DB, keys *secret.Keyring) brokerRows {
	t.Helper()

	rows := brokerRows{db: db}

	var err error

	if rows.operations, err = operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if rows.instances, err = instances.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if rows.bindings, err = bindings.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if rows.objects, err = outsideobjects.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if rows.orchestrations, err = orchestrations.Open(t.Context(), db, rows.operations); err != nil {
		t.Fatal(err)
	}

	if rows.events, err = instanceevents.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	if rows.eventLog, err = eventlog.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	if rows.messages, err = notifications.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	if rows.leftovers, err = leftovers.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	if rows.reports, err = reports.Open(t.Context(), db); err != nil {
		t.Fatal(err)
	}

	if rows.claims, err = claims.Open(t.Context(), db, clock.RealClock{}); err != nil {
		t.Fatal(err)
	}

	if rows.auditLog, err = auditlog.Open(t.Context(), db, time.Hour); err != nil {
		t.Fatal(err)
	}

	return rows
}

// provisionerRows contains the Provisioner's database with its stores.
type provisionerRows struct {
	db         *storage.DB
	operations *operations.Store
	runtimes   *runtimes.Store
	auditLog   *auditlog.Store
}

func openProvisioner(t *testing.T, db *storage.DB, keys *secret.Keyring) provisionerRows {
	t.Helper()

	rows := provisionerRows{db: db}

	var err error

	if rows.operations, err = operations.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if rows.runtimes, err = runtimes.Open(t.Context(), db, keys); err != nil {
		t.Fatal(err)
	}

	if rows.auditLog, err = auditlog.Open(t.Context(), db, 0); err != nil {
		t.Fatal(err)
	}

	return rows
}
