package lifecyclemanager

import (
	"errors"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Config configures the handover of runtimes to Lifecycle Manager.
type Config struct {
	Enabled      bool          `env:"ENABLED"       help:"install Kyma through Lifecycle Manager on the runtimes of plans that configure lifecycleManager; needs APP_CONTROL_PLANE_KUBECONFIG_PATH"`
	ReadyTimeout time.Duration `env:"READY_TIMEOUT" help:"maximum time that an operation waits for Lifecycle Manager to make Kyma ready"`
}

// DefaultConfig returns the defaults, with Lifecycle Manager turned off.
func DefaultConfig() Config { return Config{ReadyTimeout: time.Hour} }

// Check reports all invalid settings in one error, which names their variables. kubeconfig is the value of
// APP_CONTROL_PLANE_KUBECONFIG_PATH.
func (c Config) Check(kubeconfig string) error {
	if !c.Enabled {
		return nil
	}

	return errors.Join(
		failure.Unless(kubeconfig != "",
			"APP_LIFECYCLE_MANAGER_ENABLED: also set APP_CONTROL_PLANE_KUBECONFIG_PATH to a kubeconfig for the cluster that Lifecycle Manager watches"),
		failure.Unless(c.ReadyTimeout > 0, "APP_LIFECYCLE_MANAGER_READY_TIMEOUT: must be positive"),
	)
}
