package binding

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// removeBinding removes the binding's row. Its operations are kept as its history.
func removeBinding(bindings Bindings) Step {
	return process.StepFunc("Remove_Binding",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if err := bindings.RemoveBinding(ctx, operation.Data.Binding.ID); err != nil {
				return operation, 0, err
			}

			operation.Description = "Access is removed"

			return operation, 0, nil
		})
}
