package deprovisioning

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// Operation is what the steps get and give back.
type Operation = process.Operation[environment.Data]

// Provisioner is what the steps need of the Provisioner. Its errors are of package failure.
type Provisioner interface {
	OrderRuntime(ctx context.Context, caller provisionerclient.Caller, instance environment.Instance, targetSecret string,
	) (provisionerclient.Operation, error)
	DeprovisionRuntime(ctx context.Context, caller provisionerclient.Caller, runtimeID string) (operationID string, err error)
}

// Instances is where instances are recorded.
type Instances interface {
	SetRuntime(ctx context.Context, by process.Record, instance environment.Instance, runtimeID string) error
	Delete(ctx context.Context, by process.Record, instance environment.Instance) error
	Suspensions
}

// Suspensions records that an instance has no runtime any more, and a change with that if there is one. Its errors are of package
// failure.
type Suspensions interface {
	Suspend(ctx context.Context, by process.Record, instance environment.Instance, change *environment.Update) error
}

// Provisionings finds the data of the operation that ordered the runtime of an instance, empty when there can be none. Its errors are of
// package failure.
type Provisionings interface {
	LastProvisioning(ctx context.Context, instanceID string) (environment.Data, error)
}

// Options are what the process needs.
type Options struct {
	Provisioner   Provisioner
	Instances     Instances
	Provisionings Provisionings
	// Waiter waits for the Provisioner.
	Waiter provisionerwait.Waiter
	// Kind tells what the Provisioner can do.
	Kind  func() provisionerclient.Kind
	Limit time.Duration
}

// Process removes a runtime and its instance.
func Process(options Options) process.Process[environment.Data] {
	return removing(environment.KindDeprovision, options, removeInstance{instances: options.Instances})
}

// Suspension removes a runtime and keeps its instance.
func Suspension(options Options) process.Process[environment.Data] {
	return removing(environment.KindSuspend, options, suspendInstance{instances: options.Instances})
}

// removing is a process that removes a runtime and ends with the step.
func removing(kind string, options Options, last process.Step[environment.Data]) process.Process[environment.Data] {
	stage := func(step process.Step[environment.Data]) process.Stage[environment.Data] {
		return process.Stage[environment.Data]{Name: step.Name(), Retry: process.DefaultRetry(), Steps: process.Steps(step)}
	}

	// An operator who has removed the runtime by hand lets the steps be skipped that would remove it.
	remove := stage(removeRuntime{
		provisioner: options.Provisioner, instances: options.Instances, waiter: options.Waiter, kind: options.Kind,
	})
	check := stage(checkRuntimeRemoval{waiter: options.Waiter})
	remove.Steps[0].Skippable, check.Steps[0].Skippable = true, true
	check.RetryFrom = remove.Name

	return process.Process[environment.Data]{
		Kind:  kind,
		Limit: options.Limit,
		Stages: []process.Stage[environment.Data]{
			stage(initStep{provisionings: options.Provisionings}),
			remove,
			check,
			stage(last),
		},
	}
}
