package reconciler

import (
	"errors"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream"
)

// minTimeout is the minimum timeout of a call. The Reconciler tries for about 35 s to reach the runtime before it rejects a
// kubeconfig.
const minTimeout = time.Minute

// Config configures the connection to the Reconciler. An empty URL switches the Reconciler off.
type Config struct {
	URL                 string        `env:"URL"                  help:"URL of the Reconciler, without /v1; empty turns the integration off"`
	ProvisioningTimeout time.Duration `env:"PROVISIONING_TIMEOUT" help:"maximum time that an operation waits for the Reconciler to install Kyma"`
	Timeout             time.Duration `env:"TIMEOUT"              help:"timeout of one call, at least 1m, because the Reconciler connects to the runtime before it responds"`
	Calls               int           `env:"CALLS"                help:"maximum number of concurrent calls, per replica"`
}

// DefaultConfig returns the defaults, with the Reconciler turned off.
func DefaultConfig() Config {
	return Config{ProvisioningTimeout: 2 * time.Hour, Timeout: 90 * time.Second, Calls: 10}
}

// Check reports all invalid settings in one error, which names their variables.
func (c Config) Check() error {
	if c.URL == "" {
		return nil
	}

	return errors.Join(
		upstream.CheckURL("APP_RECONCILER_URL", c.URL),
		failure.Unless(c.Timeout >= minTimeout, "APP_RECONCILER_TIMEOUT: must be at least %s", minTimeout),
		failure.Unless(c.ProvisioningTimeout > 0 && c.Calls > 0, "APP_RECONCILER_PROVISIONING_TIMEOUT and APP_RECONCILER_CALLS: must be positive"),
	)
}
