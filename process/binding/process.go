package binding

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// Limit is the maximum duration of creating or removing a binding. It exceeds the sum of the stages' retry windows, each of which
// is at most one hour.
const Limit = 3 * time.Hour

// Operation is the input and the result of the steps.
type Operation = process.Operation[environment.Data]

// Step is a step of the processes. Its data is environment.Data.
type Step = process.Step[environment.Data]

// Runtimes creates and removes ServiceAccounts in runtimes. Both calls are idempotent: Grant returns new credentials for an
// existing ServiceAccount, and Revoke succeeds if it is gone. An error of kind failure.NotFound means that the runtime does not
// exist.
type Runtimes interface {
	Grant(ctx context.Context, instance environment.Instance, binding environment.Binding) (environment.Access, error)
	Revoke(ctx context.Context, instance environment.Instance, binding environment.Binding) error
}

// Bindings is the access of the processes to the instances and bindings in the broker's database.
type Bindings interface {
	// Find returns the current state of the instance.
	Find(ctx context.Context, instanceID string) (environment.Instance, error)
	// WantsBinding reports whether the binding exists and is not being removed.
	WantsBinding(ctx context.Context, id string) (bool, error)
	// SaveAccess returns the effect that stores the credentials and makes the binding ready.
	SaveAccess(binding environment.Binding, access environment.Access) process.Effect
	// RuntimeEnding reports whether the runtime of the instance is being removed or was removed.
	RuntimeEnding(ctx context.Context, instanceID string) (bool, error)
	// RemoveBinding returns the effect that removes the binding's row, if it exists.
	RemoveBinding(id string) process.Effect
}

// Options are the dependencies of the processes.
type Options struct {
	Runtimes Runtimes
	Bindings Bindings
}

// Bind returns the process that creates the access of a binding to its runtime. A client is waiting for the result, so retries
// are frequent and end after ten minutes.
func Bind(options Options) process.Process[environment.Data] {
	return process.Process[environment.Data]{
		Kind:  environment.KindBind,
		Limit: Limit,
		Stages: []process.Stage[environment.Data]{{
			Name: "create_access",
			Retry: process.RetryPolicy{
				First: 500 * time.Millisecond, Factor: 2, Cap: 15 * time.Second, Jitter: 0.2, Window: 10 * time.Minute,
			},
			Steps: []process.Task[environment.Data]{{
				Step: createAccess{runtimes: options.Runtimes, bindings: options.Bindings},
				Notes: process.Notes{
					Does: "Creates the service account of the binding.", System: "runtime", Creates: "a service account with its role",
				},
			}},
		}},
	}
}

// Unbind returns the process that removes the access of a binding. Operators may skip the removal of the ServiceAccount if the
// runtime will never respond again.
func Unbind(options Options) process.Process[environment.Data] {
	retry := process.RetryPolicy{
		First: 500 * time.Millisecond, Factor: 2, Cap: 30 * time.Second, Jitter: 0.2, Window: time.Hour,
	}

	return process.Process[environment.Data]{
		Kind:  environment.KindUnbind,
		Limit: Limit,
		Stages: []process.Stage[environment.Data]{
			{Name: "remove_access", Retry: retry, Steps: []process.Task[environment.Data]{{
				Step: removeAccess(options.Runtimes, options.Bindings), Skippable: true,
				Notes: process.Notes{Does: "Removes the service account of the binding.", System: "runtime"},
			}}},
			{Name: "remove_binding", Retry: retry, Steps: []process.Task[environment.Data]{{
				Step: removeBinding(options.Bindings), Notes: process.Notes{Does: "Removes the binding, but not the history of its operations."},
			}}},
		},
	}
}
