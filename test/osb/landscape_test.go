package osb

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/config"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage"
)

// clusterCreation is how long a cluster takes to be made or changed; to be removed it takes half of that.
const clusterCreation = 100 * time.Millisecond

// landscape is a broker, a Provisioner and a garden in memory. The broker can be stopped and started again.
type landscape struct {
	platform

	road   *road
	garden *fakegarden.Memory
	// log is what the broker has written.
	log *logtest.Hook

	settings broker.Config
	stop     func()
}

// setting is a variable of the broker's configuration, as operators write it: APP_OSB_STRICT=true.
type setting string

// start runs a landscape on new SQLite files until the test ends.
func start(t testing.TB, settings ...setting) *landscape {
	t.Helper()

	return startOn(t, sqlite, settings...)
}

// startOn runs a landscape on new databases until the test ends.
func startOn(t testing.TB, fresh database, settings ...setting) *landscape {
	t.Helper()

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{
		Dir: filepath.Join(t.TempDir(), "garden"), ClusterCreation: clusterCreation, Log: logging.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}

	run(t, memory.Run)

	runtimes := provisioner.DefaultConfig()
	runtimes.Address, runtimes.StatusAddress, runtimes.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	runtimes.Database = fresh(t, "provisioner")
	runtimes.Gardener.Project = fakegarden.DefaultProject

	service, err := provisioner.New(t.Context(), runtimes, memory.Client(), logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	run(t, service.Run)

	road, err := newRoad("http://" + service.Address())
	if err != nil {
		t.Fatal(err)
	}

	detour := httptest.NewServer(road)
	t.Cleanup(detour.Close)

	l := &landscape{garden: memory, road: road}
	l.settings = brokerSettings(t, fresh(t, "broker"), settings...)
	l.settings.Provisioner.URL = detour.URL + "/graphql"

	l.startBroker(t)
	t.Cleanup(func() { l.stop() })

	return l
}

// brokerSettings are those of a broker of these tests. Its users may do everything, or only look on.
func brokerSettings(t testing.TB, database replica.Database, settings ...setting) broker.Config {
	t.Helper()

	variables := make([]string, len(settings))
	for i, setting := range settings {
		variables[i] = string(setting)
	}

	read, err := config.Read(config.Prefix, broker.DefaultConfig(), variables)
	if err != nil {
		t.Fatal(err)
	}

	read.Address, read.StatusAddress, read.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	read.Database = database
	read.AuthBasicUsers = user + ":" + password + ":osb+admin,watcher:" + password + ":viewer"
	read.DashboardURL = "https://dashboard.example.com/?kubeconfigID={instance_id}"

	return read
}

// startBroker starts the broker, on the data of the one before it if there was one.
func (l *landscape) startBroker(t testing.TB) {
	t.Helper()

	logger, hook := logtest.NewNullLogger()
	logger.SetLevel(logrus.DebugLevel)

	service, err := broker.New(context.Background(), l.settings, logger)
	if err != nil {
		t.Fatal(err)
	}

	l.stop, l.log = serve(t, service.Run), hook
	l.platform = platform{url: "http://" + service.Address(), user: user, password: password}
}

// restart stops the broker and starts it again.
func (l *landscape) restart(t testing.TB) {
	t.Helper()

	l.stop()
	l.startBroker(t)
}

// run runs a service until the test ends.
func run(t testing.TB, service func(context.Context) error) {
	t.Helper()
	t.Cleanup(serve(t, service))
}

// serve runs a service until the returned function is called, which may be done twice.
func serve(t testing.TB, service func(context.Context) error) (stop func()) {
	t.Helper()

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)

	go func() { ended <- service(ctx); close(ended) }()

	return func() {
		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// shoots are the clusters of a tenant.
func (l *landscape) shoots(t testing.TB, tenant string) []gardencorev1beta1.Shoot {
	t.Helper()

	found := &gardencorev1beta1.ShootList{}

	err := l.garden.Client().List(context.Background(), found, client.InNamespace(l.garden.Namespace()),
		client.MatchingLabels{"account": tenant})
	if err != nil {
		t.Fatal(err)
	}

	return found.Items
}

// stickClusters keeps clusters from getting ready.
func (l *landscape) stickClusters(t testing.TB) {
	t.Helper()

	faults := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.garden.Namespace(), Name: gardenlet.FaultsConfigMap},
		Data:       map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultStuck)},
	}
	if err := l.garden.Client().Create(context.Background(), faults); err != nil {
		t.Fatal(err)
	}
}

// database gives a service a new database; the name tells it from others.
type database func(t testing.TB, service string) replica.Database

// databases are those that every service runs on.
func databases() map[string]database {
	return map[string]database{"sqlite": sqlite, "postgres": postgres}
}

func sqlite(t testing.TB, service string) replica.Database {
	t.Helper()

	settings := replica.DefaultConfig(service, storage.DriverSQLite).Database
	settings.Path = filepath.Join(t.TempDir(), service+".db")
	settings.SecretKeys = secret.NewKey("test")

	return settings
}

func postgres(t testing.TB, service string) replica.Database {
	t.Helper()

	database := postgrestest.Database(t)

	settings := replica.DefaultConfig(service, storage.DriverPostgres).Database
	settings.User, settings.Password = database.User, database.Password
	settings.Host, settings.Port = database.Host, strconv.Itoa(database.Port)
	settings.Name, settings.SSLMode = database.Name, database.SSLMode
	settings.SecretKeys = secret.NewKey("test")

	return settings
}
