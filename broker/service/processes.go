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

// Parts are the dependencies of the broker's processes. All calls of a process go through them, so that the crash matrix can make any call
// fail.
type Parts struct {
	Provisioner *provisionerclient.Client
	Rows        Rows
	Access      RuntimeAccess
	// Pace and Kind come from the feed. FeedAlive reports whether it works, so that operations need not poll.
	Pace      provisionerwait.Pace
	Kind      func() provisionerclient.Kind
	FeedAlive func() bool
}

// RuntimeAccess calls the API servers of runtimes.
type RuntimeAccess interface {
	provisioning.RuntimeAccess
	binding.Runtimes
}

// Rows are the methods of the broker's tables that the processes use.
type Rows interface {
	provisioning.Instances
	deprovisioning.Instances
	deprovisioning.Provisionings
	update.Instances
	binding.Bindings
}

// Processes returns the processes of the broker. Register new kinds of operations here.
func Processes(config Config, parts Parts) []process.Process[environment.Data] {
	limiter := provisionerwait.NewPollLimiter(config.Provisioner.PollLimit)
	delay := func(operationID string) time.Duration {
		if parts.FeedAlive() {
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
