package binding

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// removeAccess removes the account, unless its runtime is gone.
func removeAccess(runtimes Runtimes, bindings Bindings) Step {
	return process.StepFunc("Remove_Access",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			operation.Description = "Access is being removed"

			gone, err := runtimeGone(ctx, bindings, operation.Data.Binding)
			if err != nil || gone {
				return operation, 0, err
			}

			err = runtimes.Revoke(ctx, operation.Data.Instance, operation.Data.Binding)
			if err != nil && !failure.Is(err, failure.NotFound) {
				return operation, 0, err
			}

			return operation, 0, nil
		})
}

// runtimeGone reports whether the instance is gone, or its runtime is no longer the one with the account. A suspension removes
// the runtime with all its accounts.
func runtimeGone(ctx context.Context, bindings Bindings, binding environment.Binding) (bool, error) {
	instance, err := bindings.Find(ctx, binding.InstanceID)
	if failure.Of(err).Reason == failure.ReasonNotFound {
		return true, nil
	}

	return err == nil && instance.RuntimeID != binding.RuntimeID, err
}
