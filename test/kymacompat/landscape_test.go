package kymacompat

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage"
)

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

	made := postgrestest.Database(t)

	settings := replica.DefaultConfig(service, storage.DriverPostgres).Database
	settings.User, settings.Password = made.User, made.Password
	settings.Host, settings.Port = made.Host, strconv.Itoa(made.Port)
	settings.Name, settings.SSLMode = made.Name, made.SSLMode
	settings.SecretKeys = secret.NewKey("test")

	return settings
}

// ourProvisioner runs our Provisioner on a garden in memory whose clusters take the time to be made, and returns the address of its API.
func ourProvisioner(t *testing.T, fresh database, creation time.Duration) string {
	t.Helper()

	memory, err := fakegarden.Open(t.Context(), fakegarden.Options{
		Dir: filepath.Join(t.TempDir(), "garden"), ClusterCreation: creation, Log: logging.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}

	settings := provisioner.DefaultConfig()
	settings.Address, settings.StatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	settings.ShutdownDelay = 0
	settings.Database = fresh(t, "provisioner")
	settings.Gardener.Project = fakegarden.DefaultProject

	service, err := provisioner.New(t.Context(), settings, memory.Client(), logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	run(t, memory.Run)
	run(t, service.Run)

	return "http://" + service.Address() + "/graphql"
}

// run runs a service until the test ends.
func run(t *testing.T, service func(context.Context) error) {
	t.Helper()

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)

	go func() { ended <- service(ctx) }()

	t.Cleanup(func() {
		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
