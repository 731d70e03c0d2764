package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage"
)

func TestMain(m *testing.M) { postgrestest.Main(m) }

// database gives a service a new database; the name tells it from others.
type database func(t *testing.T, service string) replica.Database

// eachDatabase runs the test on SQLite and on PostgreSQL.
func eachDatabase(t *testing.T, test func(t *testing.T, fresh database)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, onSQLite) })
	t.Run("postgres", func(t *testing.T) { test(t, onPostgres) })
}

func onSQLite(t *testing.T, service string) replica.Database {
	t.Helper()

	settings := replica.DefaultConfig(service, storage.DriverSQLite).Database
	settings.Path = filepath.Join(t.TempDir(), service+".db")
	settings.SecretKeys = secret.NewKey("test")

	return settings
}

func onPostgres(t *testing.T, service string) replica.Database {
	t.Helper()

	return postgresSettings(postgrestest.Database(t), service)
}

// landscape is a broker, a Provisioner and a garden in memory, run by the test.
type landscape struct {
	platform

	garden *fakegarden.Memory
	// metrics are the broker's.
	metrics prometheus.Gatherer
}

// start runs a landscape whose clusters take the time to be made. The broker finds the Provisioner through the detour, if any.
func start(t *testing.T, fresh database, creation time.Duration, detour func(provisionerURL string) string,
	changes ...func(*provisioner.Config),
) landscape {
	t.Helper()

	return startWith(t, fresh, creation, detour, func(_ *broker.Config, settings *provisioner.Config) {
		for _, change := range changes {
			change(settings)
		}
	})
}

// startWith is start with other settings of both services.
func startWith(t *testing.T, fresh database, creation time.Duration, detour func(provisionerURL string) string,
	change func(*broker.Config, *provisioner.Config),
) landscape {
	t.Helper()

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{
		Dir: filepath.Join(t.TempDir(), "garden"), ClusterCreation: creation, Log: logging.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}

	run(t, memory.Run)

	provisionerSettings := provisioner.DefaultConfig()
	provisionerSettings.Address, provisionerSettings.StatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	provisionerSettings.ShutdownDelay = 0
	provisionerSettings.Database = fresh(t, "provisioner")
	provisionerSettings.Gardener.Project = fakegarden.DefaultProject

	settings := broker.DefaultConfig()
	settings.Address, settings.StatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	settings.ShutdownDelay = 0
	settings.Database = fresh(t, "broker")
	settings.AuthBasicUsers = user + ":" + password + ":osb+admin"
	change(&settings, &provisionerSettings)

	runtimes, err := provisioner.New(t.Context(), provisionerSettings, memory.Client(), logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	run(t, runtimes.Run)

	settings.Provisioner.URL = "http://" + runtimes.Address() + "/graphql"
	if detour != nil {
		settings.Provisioner.URL = detour(settings.Provisioner.URL)
	}

	instances, err := broker.New(t.Context(), settings, logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	run(t, instances.Run)

	return landscape{
		platform: platform{TB: t, url: "http://" + instances.Address(), user: user, password: password}, garden: memory,
		metrics: instances.Metrics(),
	}
}

// run runs a service until the test ends.
func run(t *testing.T, service func(context.Context) error) {
	t.Helper()

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)

	go func() { ended <- service(ctx) }()

	t.Cleanup(func() {
		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// shoots are the Shoots that the garden has.
func (l landscape) shoots() []gardencorev1beta1.Shoot {
	l.Helper()

	found := &gardencorev1beta1.ShootList{}
	if err := l.garden.Client().List(context.Background(), found, client.InNamespace(l.garden.Namespace())); err != nil {
		l.Fatal(err)
	}

	return found.Items
}
