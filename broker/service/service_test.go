package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/sandbox/postgrestest"
	"github.com/environment-broker/environment-broker/internal/secret"
)

func TestMain(m *testing.M) { postgrestest.MainWithoutLeaks(m) }

func usable(t *testing.T) service.Config {
	t.Helper()

	config := service.DefaultConfig()
	config.Address, config.StatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	config.Database.Path = filepath.Join(t.TempDir(), "broker.db")
	config.Database.SecretKeys = secret.NewKey("test")

	return config
}

// written writes the content to a new file and returns its path.
func written(t *testing.T, content string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}

func TestUsableConfiguration(t *testing.T) {
	broker, err := service.New(t.Context(), usable(t), logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	if err := broker.Close(); err != nil {
		t.Errorf("closing a broker that never ran: %v", err)
	}
}

// TestInvalidConfiguration checks that errors name the variable. TestMain checks that a failed start leaks no
// goroutine.
func TestInvalidConfiguration(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*service.Config)
		want   []string
	}{
		"no key": {
			"a key is required, and the error names the variable",
			func(c *service.Config) { c.Database.SecretKeys = "" },
			[]string{"APP_DATABASE_SECRET_KEYS", "openssl rand"},
		},
		"bad key": {
			"the error names the invalid key by its number",
			func(c *service.Config) { c.Database.SecretKeys = "k1:hush" },
			[]string{"APP_DATABASE_SECRET_KEYS", "number 1"},
		},
		"platforms without users": {
			"without authentication, no client could belong to a platform",
			func(c *service.Config) { c.PlatformsFile = written(t, "platforms: [{name: a, users: [u]}]") },
			[]string{"APP_PLATFORMS_FILE", "APP_AUTH_BASIC_USERS"},
		},
		"no platforms": {
			"an empty file would end the isolation",
			func(c *service.Config) { c.AuthBasicUsers, c.PlatformsFile = "u:p", written(t, "") },
			[]string{"APP_PLATFORMS_FILE", "no platforms"},
		},
		"missing platforms": {
			"the file must exist at the start",
			func(c *service.Config) { c.AuthBasicUsers, c.PlatformsFile = "u:p", "missing.yaml" },
			[]string{"APP_PLATFORMS_FILE", "missing.yaml"},
		},
		"time of an unknown job": {
			"the job would run at its interval", func(c *service.Config) { c.JobTimes = map[string]string{"expirey": "02:00"} }, []string{"APP_JOB_TIMES", `no job "expirey"`},
		},
		"no time of day": {
			"the error names the job", func(c *service.Config) { c.JobTimes = map[string]string{"expiry": "25:00"} }, []string{"APP_JOB_TIMES", "expiry", `"25:00" is not a time of day`},
		},
		"quota of an unknown plan": {
			"a misspelled plan would have no limit",
			func(c *service.Config) { c.QuotasFile = written(t, "quotas: [{name: a, plans: [awz], limit: 1}]") },
			[]string{"APP_QUOTAS_FILE", `quota a: plans: the catalog has no plan "awz"`},
		},
		"missing quotas": {
			"the file must exist at the start", func(c *service.Config) { c.QuotasFile = "missing.yaml" }, []string{"APP_QUOTAS_FILE", "missing.yaml"},
		},
		"unreachable rule": {
			"the error names the rule",
			func(c *service.Config) {
				c.AccountPool.RulesFile, c.Gardener.Project = written(t, "rule: [aws, 'aws(HR=nowhere)']"), "local"
			},
			[]string{"APP_ACCOUNT_POOL_RULES_FILE", `rule "aws(HR=nowhere)" is unreachable`, "plan azure is offered but has no rule"},
		},
		"pool without garden": {
			"the broker labels the accounts in Gardener",
			func(c *service.Config) {
				c.AccountPool.RulesFile, c.Gardener.Project, c.Catalog.EnablePlans = written(t, "rule: [aws]"), "local", []string{"aws"}
			},
			[]string{"APP_GARDENER_KUBECONFIG_PATH"},
		},
		"pool without project": {
			"the accounts are in a project", func(c *service.Config) { c.AccountPool.RulesFile = "rules.yaml" }, []string{"APP_GARDENER_PROJECT"},
		},
		"exposed": {
			"users are required",
			func(c *service.Config) { c.Address = "0.0.0.0:0" },
			[]string{"APP_AUTH_BASIC_USERS", "0.0.0.0:0"},
		},
		"negative delay": {
			"delays must not be negative",
			func(c *service.Config) { c.ShutdownDelay = -1 },
			[]string{"APP_SHUTDOWN_DELAY"},
		},
		"bad users": {
			"the file of the users must be readable",
			func(c *service.Config) { c.AuthBasicUsers = "hush" },
			[]string{"APP_AUTH_BASIC_USERS"},
		},
		"driver":       {"the driver is misspelled", func(c *service.Config) { c.Database.Driver = "postgresql" }, []string{"APP_DATABASE_DRIVER", "postgresql"}},
		"port":         {"a port is a number", func(c *service.Config) { c.Database.Port = "http" }, []string{"APP_DATABASE_PORT"}},
		"no polls":     {"the interval must be positive", func(c *service.Config) { c.Provisioner.PollLimit = 0 }, []string{"APP_PROVISIONER_POLL_LIMIT"}},
		"no calls":     {"at least one worker is required", func(c *service.Config) { c.Provisioner.Calls = 0 }, []string{"APP_PROVISIONER_CALLS"}},
		"no address":   {"the address of the Provisioner is required", func(c *service.Config) { c.Provisioner.URL = "" }, []string{"APP_PROVISIONER_URL"}},
		"bad address":  {"addresses must not contain a password", func(c *service.Config) { c.Provisioner.URL = "http://me:hush@[::1" }, []string{"APP_PROVISIONER_URL"}},
		"other scheme": {"the Provisioner uses HTTP", func(c *service.Config) { c.Provisioner.URL = "ftp://me:hush@provisioner" }, []string{"APP_PROVISIONER_URL"}},
		"folder":       {"the error names the file", func(c *service.Config) { c.Database.Path = filepath.Join(t.TempDir(), "none", "b.db") }, []string{"b.db"}},
		"address taken": {
			"two brokers cannot share an address", func(c *service.Config) { c.StatusAddress = "127.0.0.1:99999" }, []string{"127.0.0.1:99999"},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := usable(t)
			c.change(&config)

			_, err := service.New(t.Context(), config, logging.Discard())
			if err == nil {
				t.Fatalf("%s: the broker started, want an error", c.reason)
			}

			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want an error with %q", c.reason, err, want)
				}
			}

			if strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: the error contains a secret: %v", c.reason, err)
			}
		})
	}
}
