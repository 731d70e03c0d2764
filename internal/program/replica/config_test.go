package replica_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/environment-broker/environment-broker/internal/audit/delivery"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

func TestDatabaseSettings(t *testing.T) {
	database := replica.DefaultConfig("broker", storage.DriverPostgres).Database
	database.Password = "hush"

	want := storage.Config{
		Driver: "postgres", Path: "broker.db", User: "postgres", Password: "hush", Host: "localhost", Port: "5432",
		Name: "broker", SSLMode: "disable",
	}

	got, err := database.Storage()
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(storage.Config{})); diff != "" || err != nil {
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
		"pooler":    {"a pooler has a port", func(d *replica.Database) { d.Pooler = "pgbouncer" }, `APP_DATABASE_POOLER: "pgbouncer"`},
		"ports": {
			"each host of a list has a port", func(d *replica.Database) { d.Host, d.Port = "a,b,c", "5432,5433" },
			"APP_DATABASE_PORT: 2 ports for 3 hosts",
		},
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
		AuditDelivery: delivery.Config{URL: "m4rk3d"},
	}.Check()
	for _, variable := range []string{
		"APP_WORKERS", "APP_LEASE_DURATION", "APP_OPERATION_TIMEOUT", "APP_PENDING_TIMEOUT", "APP_TIMELINE_RETENTION",
		"APP_SHUTDOWN_DELAY", "APP_AUDIT_RETENTION", "APP_AUDIT_DELIVERY_URL",
	} {
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s is missing from %v", variable, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	const password, tls, sslMode = "APP_DATABASE_PASSWORD", "APP_TLS_CERT_FILE", "APP_DATABASE_SSL_MODE"

	cases := map[string]struct {
		reason string
		change func(*replica.Config)
		want   []string
	}{
		"defaults": {"nothing crosses the network", func(*replica.Config) {}, nil},
		"reachable service": {
			"a service on the network uses the public password", func(c *replica.Config) { c.Address = ":8080" }, []string{password},
		},
		"remote database": {
			"the password and the data cross the network", func(c *replica.Config) { c.Database.Host = "db.example.com" }, []string{password, sslMode},
		},
		"remote standby": {
			"one host of the list is on the network", func(c *replica.Config) { c.Database.Host = "localhost,db2" }, []string{password, sslMode},
		},
		"remote pooler": {
			"the connections to the pooler cross the network", func(c *replica.Config) { c.Database.Pooler = "pgbouncer:6432" }, []string{password, sslMode},
		},
		"own password": {
			"only encryption is missing", func(c *replica.Config) { c.Database.Host, c.Database.Password = "10.0.0.1", "hush" }, []string{sslMode},
		},
		"encrypted": {
			"the connection is encrypted and verified", func(c *replica.Config) {
				c.Database.Host, c.Database.Password, c.Database.SSLMode = "10.0.0.1", "hush", "verify-full"
			}, nil,
		},
		"Unix socket": {"a socket is on the same machine", func(c *replica.Config) { c.Database.Host = "/run/postgresql" }, nil},
		"SQLite": {
			"SQLite has no password", func(c *replica.Config) { c.Address, c.Database.Driver = ":8080", storage.DriverSQLite }, nil,
		},
		"users without TLS": {
			"passwords of users cross the network", func(c *replica.Config) {
				c.Address, c.Database.Password, c.AuthBasicUsers = "0.0.0.0:8080", "hush", "cf:hush"
			}, []string{tls},
		},
		"file of users without TLS": {
			"passwords of users cross the network", func(c *replica.Config) {
				c.Address, c.Database.Password, c.Access.UsersFile = "0.0.0.0:8080", "hush", "users"
			}, []string{tls},
		},
		"users with TLS": {
			"passwords of users are encrypted", func(c *replica.Config) {
				c.Address, c.Database.Password, c.AuthBasicUsers, c.Access.TLS.CertFile = ":8080", "hush", "cf:hush", "tls.crt"
			}, nil,
		},
		"users on loopback": {"nothing crosses the network", func(c *replica.Config) { c.AuthBasicUsers = "cf:hush" }, nil},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := replica.DefaultConfig("broker", storage.DriverPostgres)
			config.Address = "127.0.0.1:8080"
			c.change(&config)

			var got []string

			for _, warning := range config.Warnings() {
				variable, _, _ := strings.Cut(warning, ":")
				got = append(got, variable)

				if strings.Contains(warning, "hush") {
					t.Errorf("the warning quotes a password: %s", warning)
				}
			}

			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// TestNewLogsWarnings checks that New logs the warnings of the configuration. New then fails,
// because the configuration has no keys.
func TestNewLogsWarnings(t *testing.T) {
	config := replica.DefaultConfig("broker", storage.DriverPostgres)
	config.Address, config.AuthBasicUsers = ":8080", "cf:hush"

	log, hook := logtest.NewNullLogger()
	if _, err := replica.New(t.Context(), "broker", config, log); err == nil {
		t.Fatal("the service starts without keys")
	}

	var got []string
	for _, entry := range hook.AllEntries() {
		got = append(got, entry.Message)
	}

	if diff := cmp.Diff(config.Warnings(), got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
