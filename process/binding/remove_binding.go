package binding

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
)

// removeBinding removes the binding's row. Its operations stay, so that what happened can still be told.
type removeBinding struct {
	bindings Bindings
}

// Name implements process.Step.
func (removeBinding) Name() string { return "Remove_Binding" }

// Run implements process.Step.
func (s removeBinding) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	if err := s.bindings.RemoveBinding(ctx, operation.Data.Binding.ID); err != nil {
		return operation, 0, err
	}

	operation.Description = "Access is removed"

	return operation, 0, nil
}
