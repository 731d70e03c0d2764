package service_test

import (
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// usable is a configuration that a broker starts with.
func usable(t *testing.T) service.Config {
	t.Helper()

	config := service.DefaultConfig()
	config.Address, config.StatusAddress = "127.0.0.1:0", "127.0.0.1:0"
	config.Database.Path = filepath.Join(t.TempDir(), "broker.db")
	config.Database.SecretKeys = secret.NewKey("test")

	return config
}

func TestUsableConfiguration(t *testing.T) {
	broker, err := service.New(t.Context(), usable(t), logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	if err := broker.Close(); err != nil {
		t.Errorf("a broker that was never run cannot be closed: %v", err)
	}
}

// TestRefusedConfiguration also shows, by TestMain, that a broker that does not start gives back what it has taken.
func TestRefusedConfiguration(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*service.Config)
		want   []string
	}{
		"no key": {
			"secrets are never stored in plain text, and the error says what to do",
			func(c *service.Config) { c.Database.SecretKeys = "" },
			[]string{"APP_DATABASE_SECRET_KEYS", "openssl rand"},
		},
		"bad key": {
			"an invalid key is named by its number",
			func(c *service.Config) { c.Database.SecretKeys = "k1:hush" },
			[]string{"APP_DATABASE_SECRET_KEYS", "number 1"},
		},
		"exposed": {
			"without users anybody could remove clusters",
			func(c *service.Config) { c.Address = "0.0.0.0:0" },
			[]string{"APP_AUTH_BASIC_USERS", "0.0.0.0:0"},
		},
		"negative delay": {
			"a delay cannot be negative",
			func(c *service.Config) { c.ShutdownDelay = -1 },
			[]string{"APP_SHUTDOWN_DELAY"},
		},
		"bad users": {
			"a user who cannot be read could not log in",
			func(c *service.Config) { c.AuthBasicUsers = "hush" },
			[]string{"APP_AUTH_BASIC_USERS"},
		},
		"driver":       {"a misspelled driver is named", func(c *service.Config) { c.Database.Driver = "postgresql" }, []string{"APP_DATABASE_DRIVER", "postgresql"}},
		"port":         {"a port is a number", func(c *service.Config) { c.Database.Port = "http" }, []string{"APP_DATABASE_PORT"}},
		"no polls":     {"nothing would ever be noticed to be done", func(c *service.Config) { c.Provisioner.PollLimit = 0 }, []string{"APP_PROVISIONER_POLL_LIMIT"}},
		"no calls":     {"nothing would ever be ordered", func(c *service.Config) { c.Provisioner.Calls = 0 }, []string{"APP_PROVISIONER_CALLS"}},
		"no address":   {"there is nobody to order from", func(c *service.Config) { c.Provisioner.URL = "" }, []string{"APP_PROVISIONER_URL"}},
		"bad address":  {"an address may hold a password", func(c *service.Config) { c.Provisioner.URL = "http://me:hush@[::1" }, []string{"APP_PROVISIONER_URL"}},
		"other scheme": {"it is reached by HTTP", func(c *service.Config) { c.Provisioner.URL = "ftp://me:hush@provisioner" }, []string{"APP_PROVISIONER_URL"}},
		"folder":       {"the text names the file", func(c *service.Config) { c.Database.Path = filepath.Join(t.TempDir(), "none", "b.db") }, []string{"b.db"}},
		"address taken": {
			"two brokers do not share an address", func(c *service.Config) { c.StatusAddress = "127.0.0.1:99999" }, []string{"127.0.0.1:99999"},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			config := usable(t)
			c.change(&config)

			_, err := service.New(t.Context(), config, logging.Discard())
			if err == nil {
				t.Fatalf("%s: the broker starts", c.reason)
			}

			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want an error with %q", c.reason, err, want)
				}
			}

			if strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: the error shows a secret: %v", c.reason, err)
			}
		})
	}
}
