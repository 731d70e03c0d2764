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

// Parts are the dependencies of the broker's processes. A process reaches the database and other systems only
// through them, so that the crash tests can inject a fault into any write and any call.
type Parts struct {
	Provisioner *provisionerclient.Client
	Rows        Rows
	Access      RuntimeAccess
	// Pace is the interval of polls of the Provisioner's operations.
	Pace provisionerwait.Pace
	// Kind is the implementation of the Provisioner, as the feed knows it.
	Kind func() provisionerclient.Kind
	// LeftOver counts runtimes that may be left over. It may be nil.
	LeftOver func(deprovisioning.LeftOver)
	// FeedAlive reports whether the feed works. Polls are then rare and need no limit.
	FeedAlive func() bool
}

// RuntimeAccess calls the API servers of runtimes. clusterclient.Access implements it.
type RuntimeAccess interface {
	provisioning.RuntimeAccess
	binding.Runtimes
}

// Rows are the methods of the broker's tables that the processes use. All errors are of package failure. A
// write to an instance on behalf of an operation that lost its lease changes nothing.
type Rows interface {
	provisioning.Instances
	deprovisioning.Instances
	deprovisioning.Provisionings
	update.Instances
	binding.Bindings
}

// Processes returns the processes of the broker, one for each kind of operation. The engine runs only
// operations whose kind has a process, so a kind must stay here as long as operations of the kind can be
// unfinished.
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

		OwnClusterLimit: config.OwnClusterTimeout,
	}
	removal := deprovisioning.Options{
		Provisioner:   parts.Provisioner,
		Instances:     parts.Rows,
		Provisionings: parts.Rows,
		Waiter:        waiter,
		Kind:          parts.Kind,
		LeftOver:      parts.LeftOver,
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
