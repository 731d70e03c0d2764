package service

import (
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/binding"
	"github.com/environment-broker/environment-broker/process/deprovisioning"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
	"github.com/environment-broker/environment-broker/process/provisioning"
	"github.com/environment-broker/environment-broker/process/update"
)

// Parts are what the broker's processes reach outside of their operations. The crash matrix hands in parts whose calls go wrong, so
// a process has no other way to the outside.
type Parts struct {
	Provisioner *provisionerclient.Client
	Rows        Rows
	Access      RuntimeAccess
	// Pace, Kind and Told are what the feed knows of the Provisioner. Told reports whether that tells of changes by itself.
	Pace provisionerwait.Pace
	Kind func() provisionerclient.Kind
	Told func() bool
}

// RuntimeAccess reaches runtimes.
type RuntimeAccess interface {
	provisioning.RuntimeAccess
	binding.Runtimes
}

// Rows are the broker's tables, as the processes use them.
type Rows interface {
	provisioning.Instances
	deprovisioning.Instances
	deprovisioning.Provisionings
	update.Instances
	binding.Bindings
}

// Processes are what the broker does with instances. Every kind of operation is registered here.
func Processes(config Config, parts Parts) []process.Process[environment.Data] {
	limiter := provisionerwait.NewPollLimiter(config.Provisioner.PollLimit)
	delay := func(operationID string) time.Duration {
		if parts.Told() {
			return 0
		}

		return limiter.Delay(operationID)
	}
	waiter := provisionerwait.Waiter{
		Operations: parts.Provisioner,
		Pace:       parts.Pace,
		Delay:      delay,
		Limit:      config.Provisioner.RuntimeTimeout,
	}

	creation := provisioning.Options{
		Provisioner:   parts.Provisioner,
		Instances:     parts.Rows,
		TargetSecrets: config.TargetSecrets,
		Access:        parts.Access,
		Waiter:        waiter,
		Limit:         config.Engine.OperationTimeout,
	}
	removal := deprovisioning.Options{
		Provisioner:   parts.Provisioner,
		Instances:     parts.Rows,
		Provisionings: parts.Rows,
		Waiter:        waiter,
		Kind:          parts.Kind,
		Limit:         config.Engine.OperationTimeout,
	}
	bindings := binding.Options{Runtimes: parts.Access, Bindings: parts.Rows}

	return []process.Process[environment.Data]{
		provisioning.Process(creation),
		deprovisioning.Process(removal),
		update.Process(update.Options{
			Provisioner: parts.Provisioner, Instances: parts.Rows, Access: parts.Access, Waiter: waiter,
			Limit: config.Engine.OperationTimeout,
		}),
		deprovisioning.Suspension(removal),
		provisioning.Resumption(creation),
		binding.Bind(bindings),
		binding.Unbind(bindings),
	}
}
