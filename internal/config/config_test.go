package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/config"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/storage"
)

// settings is a service's configuration, with every type of field that one has.
type settings struct {
	Address  string            `env:"ADDRESS"`
	Secrets  map[string]string `env:"SECRETS"`
	Strict   bool              `env:"STRICT"`
	Token    secret.String     `env:"TOKEN"`
	Limit    int               `env:"LIMIT"`
	Database config.Database   `envPrefix:"DATABASE_"`
	Engine   config.Engine     `envPrefix:""`
	Former   former            `envPrefix:"FORMER_"`
}

// former has a field of a name that the engine has too.
type former struct {
	Workers int `env:"WORKERS"`
}

func defaults() settings {
	return settings{
		Address: "127.0.0.1:1", Secrets: map[string]string{"aws": "aws"}, Strict: true, Token: "default", Limit: 7,
		Database: config.DefaultDatabase(storage.DriverSQLite, "broker"),
		Engine:   config.Engine{Workers: 60, LeaseDuration: 6 * time.Second, OperationTimeout: 24 * time.Hour, PendingTimeout: time.Hour},
		Former:   former{Workers: 1},
	}
}

func TestVariablesChangeWhatTheyName(t *testing.T) {
	cases := map[string]struct {
		reason    string
		variables []string
		change    func(*settings)
	}{
		"none":         {"what nobody sets keeps its default", nil, func(*settings) {}},
		"empty":        {"an empty variable, as charts write them, sets nothing", []string{"APP_ADDRESS=", "APP_LIMIT="}, func(*settings) {}},
		"other prefix": {"the variables of others are none of ours", []string{"ADDRESS=elsewhere", "XAPP_LIMIT=no"}, func(*settings) {}},
		"text":         {"a value may hold an equals sign", []string{"APP_ADDRESS=a=b"}, func(s *settings) { s.Address = "a=b" }},
		"secret":       {"a secret is read like a text", []string{"APP_TOKEN=hush"}, func(s *settings) { s.Token = "hush" }},
		"bool":         {"false is a value too", []string{"APP_STRICT=false"}, func(s *settings) { s.Strict = false }},
		"map": {
			"a map is replaced, not added to",
			[]string{"APP_SECRETS=gcp:g,azure:a"},
			func(s *settings) { s.Secrets = map[string]string{"gcp": "g", "azure": "a"} },
		},
		"nested": {
			"the names of nested fields add up",
			[]string{"APP_DATABASE_SSL_MODE=require", "APP_LEASE_DURATION=9s", "APP_FORMER_WORKERS=3"},
			func(s *settings) {
				s.Database.SSLMode, s.Engine.LeaseDuration, s.Former.Workers = "require", 9*time.Second, 3
			},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := defaults()
			c.change(&want)

			got, err := config.Read(config.Prefix, defaults(), c.variables)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestEveryWrongVariableIsToldAtOnce(t *testing.T) {
	_, err := config.Read(config.Prefix, defaults(), []string{
		"APP_LIMIT=hush7", "APP_STRICT=hush", "APP_LEASE_DURATION=hush6s", "APP_SECRETS=hush", "APP_FORMER_WORKERS=hush",
		"APP_WORKERS=5", "APP_TOKEN=hush", "LIMIT=hush",
	})
	if err == nil {
		t.Fatal("wrong values are accepted")
	}

	want := "reading the configuration: APP_FORMER_WORKERS: its value is not a int; " +
		"APP_LEASE_DURATION: its value is not a time.Duration: write it like 90s or 1h30m; APP_LIMIT: its value is not a int; " +
		"APP_SECRETS: its value is not a map[string]string: write it like key:value,key:value; APP_STRICT: its value is not a bool"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFaultOfTheStructIsTold(t *testing.T) {
	if _, err := config.Read(config.Prefix, struct {
		Channel chan int `env:"CHANNEL"`
	}{}, []string{"APP_CHANNEL=1"}); err == nil || !strings.Contains(err.Error(), "Channel") {
		t.Errorf("a field that no variable can set gives %v", err)
	}
}

func TestDatabaseSettings(t *testing.T) {
	database := config.DefaultDatabase(storage.DriverPostgres, "broker")
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
		change func(*config.Database)
		want   string
	}{
		"driver":    {"a misspelt driver is told before anything is opened", func(d *config.Database) { d.Driver = "mysql" }, `APP_DATABASE_DRIVER: "mysql"`},
		"no driver": {"there is no driver that everybody means", func(d *config.Database) { d.Driver = "" }, "use sqlite or postgres"},
		"port":      {"a port is a number", func(d *config.Database) { d.Port = "5432/broker" }, "APP_DATABASE_PORT"},
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

func TestKeysAreAskedForByName(t *testing.T) {
	database := config.DefaultDatabase(storage.DriverSQLite, "broker")

	if _, err := database.Keys(); err == nil || !strings.Contains(err.Error(), "APP_DATABASE_SECRET_KEYS") {
		t.Errorf("no keys give %v", err)
	}

	database.SecretKeys = "k1:hush"
	if _, err := database.Keys(); err == nil || !strings.Contains(err.Error(), "APP_DATABASE_SECRET_KEYS") || strings.Contains(err.Error(), "hush") {
		t.Errorf("a key that is none gives %v", err)
	}

	database.SecretKeys = secret.NewKey("k1")
	if _, err := database.Keys(); err != nil {
		t.Error(err)
	}
}

func TestEngineSettings(t *testing.T) {
	if err := defaults().Engine.Check(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}

	err := config.Engine{Workers: -1}.Check()
	for _, variable := range []string{"APP_WORKERS", "APP_LEASE_DURATION", "APP_OPERATION_TIMEOUT", "APP_PENDING_TIMEOUT"} {
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s is not told in %v", variable, err)
		}
	}
}
