package binding

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// Limit is how long a binding may take to be made or removed. The credentials of the longest one end before.
const Limit = 3 * time.Hour

// Operation is what the steps get and give back.
type Operation = process.Operation[environment.Data]

// Runtimes makes accounts in runtimes, and removes them. Both may be repeated. Its errors are of package failure; NotFound means
// that there is no runtime.
type Runtimes interface {
	Grant(ctx context.Context, instance environment.Instance, binding environment.Binding) (environment.Access, error)
	Revoke(ctx context.Context, instance environment.Instance, binding environment.Binding) error
}

// Bindings are the broker's rows. Its errors are of package failure.
type Bindings interface {
	// Find returns the instance, as it is now.
	Find(ctx context.Context, instanceID string) (environment.Instance, error)
	// WantsBinding reports whether the binding is there and not being removed.
	WantsBinding(ctx context.Context, id string) (bool, error)
	// KeepAccess stores the credentials, the first ones only. It reports false when the binding is not wanted any more.
	KeepAccess(ctx context.Context, id string, access environment.Access) (bool, error)
	RemoveBinding(ctx context.Context, id string) error
}

// Options are what the processes need.
type Options struct {
	Runtimes Runtimes
	Bindings Bindings
}

// Bind makes access. Who asked for it waits, so it is tried again soon, and given up after some minutes.
func Bind(options Options) process.Process[environment.Data] {
	return process.Process[environment.Data]{
		Kind:  environment.KindBind,
		Limit: Limit,
		Stages: []process.Stage[environment.Data]{{
			Name: "create_access",
			Retry: process.RetryPolicy{
				First: 500 * time.Millisecond, Factor: 2, Cap: 15 * time.Second, Jitter: 0.2, Window: 10 * time.Minute,
			},
			Steps: process.Steps[environment.Data](createAccess{runtimes: options.Runtimes, bindings: options.Bindings}),
		}},
	}
}

// Unbind takes access away. An operator who knows that the runtime will never answer may have it left out.
func Unbind(options Options) process.Process[environment.Data] {
	retry := process.RetryPolicy{
		First: 500 * time.Millisecond, Factor: 2, Cap: 30 * time.Second, Jitter: 0.2, Window: time.Hour,
	}

	return process.Process[environment.Data]{
		Kind:  environment.KindUnbind,
		Limit: Limit,
		Stages: []process.Stage[environment.Data]{
			{Name: "remove_access", Retry: retry, Steps: process.Skippable[environment.Data](
				removeAccess{runtimes: options.Runtimes, bindings: options.Bindings},
			)},
			{Name: "remove_binding", Retry: retry, Steps: process.Steps[environment.Data](
				removeBinding{bindings: options.Bindings},
			)},
		},
	}
}

// runtimeGone reports whether the runtime in which the account was is not the instance's any more: then nothing is left of it.
func runtimeGone(ctx context.Context, bindings Bindings, binding environment.Binding) (bool, error) {
	instance, err := bindings.Find(ctx, binding.InstanceID)
	if failure.Of(err).Reason == failure.ReasonNotFound {
		return true, nil
	}

	return err == nil && instance.RuntimeID != binding.RuntimeID, err
}
