package notification

import (
	"errors"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// Config configures the connection to the notification service. Without a URL, or if Disabled is set, no events are sent.
type Config struct {
	URL      string        `env:"URL"      help:"URL of the service that informs customers about the maintenance of their runtimes; empty turns the integration off"`
	Disabled bool          `env:"DISABLED" help:"send no maintenance events, even if APP_NOTIFICATION_URL is set"`
	User     string        `env:"USER"     help:"user for the notification service; empty for none"`
	Password secret.String `env:"PASSWORD" help:"password of the user"`
	Timeout  time.Duration `env:"TIMEOUT"  help:"timeout of one call, at most 5m"`
	Calls    int           `env:"CALLS"    help:"maximum number of concurrent calls, per replica"`
}

// maxTimeout limits the timeout, because the delivering replica keeps its lease during a call.
const maxTimeout = 5 * time.Minute

// DefaultConfig returns the defaults, with notifications turned off.
func DefaultConfig() Config { return Config{Timeout: 30 * time.Second, Calls: 5} }

// Enabled reports whether events are sent.
func (c Config) Enabled() bool { return c.URL != "" && !c.Disabled }

// Check reports all invalid settings in one error, which names their variables.
func (c Config) Check() error {
	if !c.Enabled() {
		return nil
	}

	return errors.Join(
		upstream.CheckURL("APP_NOTIFICATION_URL", c.URL),
		failure.Unless((c.User == "") == (c.Password == ""), "APP_NOTIFICATION_USER and APP_NOTIFICATION_PASSWORD: set both or neither"),
		failure.Unless(c.Calls > 0 && c.Timeout > 0 && c.Timeout <= maxTimeout,
			"APP_NOTIFICATION_CALLS and APP_NOTIFICATION_TIMEOUT: must be positive, and the timeout at most 5m"),
	)
}
