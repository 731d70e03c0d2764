package binding

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// removeAccess removes the ServiceAccount, unless its runtime is gone. While the instance is being deleted or suspended,
// removeAccess treats a permanent failure as success: the runtime may already reject requests, and its ServiceAccounts are
// removed with it.
func removeAccess(runtimes Runtimes, bindings Bindings) Step {
	return process.StepFunc("Remove_Access",
		func(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
			operation.Description = "Access is being removed"

			gone, err := runtimeGone(ctx, bindings, operation.Data.Binding)
			if err != nil || gone {
				return operation, 0, err
			}

			err = runtimes.Revoke(ctx, operation.Data.Instance, operation.Data.Binding)
			if err == nil || failure.Is(err, failure.NotFound) {
				return operation, 0, nil
			}

			if failure.MappingOf(failure.KindOf(err)).Retry {
				return operation, 0, err
			}

			ending, lookup := bindings.RuntimeEnding(ctx, operation.Data.Binding.InstanceID)

			switch {
			case lookup != nil:
				return operation, 0, lookup
			case !ending:
				return operation, 0, err
			default:
				log.WithError(err).Info("could not remove the ServiceAccount; it will be removed together with the runtime")

				return operation, 0, nil
			}
		})
}

// runtimeGone reports whether the instance is gone, or no longer has the binding's runtime. A suspension removes the runtime with
// all its ServiceAccounts.
func runtimeGone(ctx context.Context, bindings Bindings, binding environment.Binding) (bool, error) {
	instance, err := bindings.Find(ctx, binding.InstanceID)
	if failure.Of(err).Reason == failure.ReasonNotFound {
		return true, nil
	}

	return err == nil && instance.RuntimeID != binding.RuntimeID, err
}
