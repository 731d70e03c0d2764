package program_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// settings is a configuration with a field of each type that the services use.
type settings struct {
	Address  string            `env:"ADDRESS"`
	Secrets  map[string]string `env:"SECRETS"`
	Strict   bool              `env:"STRICT"`
	Token    secret.String     `env:"TOKEN"`
	Limit    int               `env:"LIMIT"`
	Database replica.Database  `envPrefix:"DATABASE_"`
	Engine   replica.Engine    `envPrefix:""`
	Former   former            `envPrefix:"FORMER_"`
}

// former is a group of variables with a prefix. Without the prefix, its variable would be APP_WORKERS, the same as in
// replica.Engine.
type former struct {
	Workers int `env:"WORKERS"`
}

func defaults() settings {
	return settings{
		Address: "127.0.0.1:1", Secrets: map[string]string{"aws": "aws"}, Strict: true, Token: "default", Limit: 7,
		Database: replica.Database{Driver: "sqlite", SSLMode: "disable"},
		Engine:   replica.Engine{Workers: 60, LeaseDuration: 6 * time.Second, OperationTimeout: 24 * time.Hour, PendingTimeout: time.Hour},
		Former:   former{Workers: 1},
	}
}

func TestRead(t *testing.T) {
	cases := map[string]struct {
		reason    string
		variables []string
		change    func(*settings)
	}{
		"none":         {"an absent variable keeps the default", nil, func(*settings) {}},
		"empty":        {"an empty variable, as set by Helm charts, keeps the default", []string{"APP_ADDRESS=", "APP_LIMIT="}, func(*settings) {}},
		"other prefix": {"variables with other prefixes are ignored", []string{"ADDRESS=elsewhere", "XAPP_LIMIT=no"}, func(*settings) {}},
		"text":         {"a value may contain an equals sign", []string{"APP_ADDRESS=a=b"}, func(s *settings) { s.Address = "a=b" }},
		"secret":       {"a secret is read like a string", []string{"APP_TOKEN=hush"}, func(s *settings) { s.Token = "hush" }},
		"bool":         {"false is a value too", []string{"APP_STRICT=false"}, func(s *settings) { s.Strict = false }},
		"map": {
			"a map is replaced, not added to",
			[]string{"APP_SECRETS=gcp:g,azure:a"},
			func(s *settings) { s.Secrets = map[string]string{"gcp": "g", "azure": "a"} },
		},
		"nested": {
			"the prefixes of nested fields are joined",
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

			got, err := program.ReadSettings(program.Prefix, defaults(), c.variables)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestReadListsAllInvalidVariables(t *testing.T) {
	_, err := program.ReadSettings(program.Prefix, defaults(), []string{
		"APP_LIMIT=hush7", "APP_STRICT=hush", "APP_LEASE_DURATION=hush6s", "APP_SECRETS=hush", "APP_FORMER_WORKERS=hush",
		"APP_WORKERS=5", "APP_TOKEN=hush", "LIMIT=hush",
	})
	if err == nil {
		t.Fatal("invalid values are accepted")
	}

	want := "reading the configuration: APP_FORMER_WORKERS: the value is not valid: write an integer; " +
		"APP_LEASE_DURATION: the value is not valid: write a duration, such as 90s or 1h30m; " +
		"APP_LIMIT: the value is not valid: write an integer; APP_SECRETS: the value is not valid: write key:value,key:value; " +
		"APP_STRICT: the value is not valid: write true or false"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadReportsUnsupportedFields(t *testing.T) {
	if _, err := program.ReadSettings(program.Prefix, struct {
		Channel chan int `env:"CHANNEL"`
	}{}, []string{"APP_CHANNEL=1"}); err == nil || !strings.Contains(err.Error(), "Channel") {
		t.Errorf("an unsupported field returns %v, want an error that names the field", err)
	}
}
