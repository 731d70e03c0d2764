package replica_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

func TestDatabaseSettings(t *testing.T) {
	database := replica.DefaultConfig("broker", storage.DriverPostgres).Database
	database.Password = "hush"

	want := storage.Config{
		Driver: "postgres", Path: "broker.db", User: "postgres", Password: "hush", Host: "localhost", Port: 5432,
		Name: "broker", SSLMode: "disable",
	}

	got, err := database.Storage()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}

	cases := map[string]struct {
		reason string
		change func(*replica.Database)
		want   string
	}{
		"driver":    {"a misspelled driver is rejected", func(d *replica.Database) { d.Driver = "mysql" }, `APP_DATABASE_DRIVER: "mysql"`},
		"no driver": {"there is no default driver", func(d *replica.Database) { d.Driver = "" }, "use sqlite or postgres"},
		"port":      {"a port is a number", func(d *replica.Database) { d.Port = "5432/broker" }, "APP_DATABASE_PORT"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			broken := database
			c.change(&broken)

			_, err := broken.Storage()
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: got %v, want an error with %q", c.reason, err, c.want)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	database := replica.DefaultConfig("broker", storage.DriverSQLite).Database

	if _, err := database.Keys(); err == nil || !strings.Contains(err.Error(), "APP_DATABASE_SECRET_KEYS") {
		t.Errorf("without keys, got %v", err)
	}

	database.SecretKeys = "k1:hush"
	if _, err := database.Keys(); err == nil || !strings.Contains(err.Error(), "APP_DATABASE_SECRET_KEYS") || strings.Contains(err.Error(), "hush") {
		t.Errorf("with an invalid key, got %v", err)
	}

	database.SecretKeys = secret.NewKey("k1")
	if _, err := database.Keys(); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	if err := replica.DefaultConfig("broker", storage.DriverSQLite).Check(); err != nil {
		t.Errorf("the defaults are invalid: %v", err)
	}

	err := replica.Config{
		Engine: replica.Engine{Workers: -1, TimelineRetention: -1}, ShutdownDelay: -1, AuditRetention: -1,
	}.Check()
	for _, variable := range []string{
		"APP_WORKERS", "APP_LEASE_DURATION", "APP_OPERATION_TIMEOUT", "APP_PENDING_TIMEOUT", "APP_TIMELINE_RETENTION",
		"APP_SHUTDOWN_DELAY", "APP_AUDIT_RETENTION",
	} {
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s is missing from %v", variable, err)
		}
	}
}
