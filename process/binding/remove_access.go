package binding

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// removeAccess removes the account, unless its runtime is gone.
type removeAccess struct {
	runtimes Runtimes
	bindings Bindings
}

// Name implements process.Step.
func (removeAccess) Name() string { return "Remove_Access" }

// Run implements process.Step.
func (s removeAccess) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	operation.Description = "Access is being removed"

	gone, err := runtimeGone(ctx, s.bindings, operation.Data.Binding)
	if err != nil || gone {
		return operation, 0, err
	}

	if err := s.runtimes.Revoke(ctx, operation.Data.Instance, operation.Data.Binding); err != nil && !failure.Is(err, failure.NotFound) {
		return operation, 0, err
	}

	return operation, 0, nil
}
