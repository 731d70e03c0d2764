package binding

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// cleanupTimeout bounds the calls that follow the creation of the account. They run even if the replica loses its lease,
// because no other replica may know of the account.
const cleanupTimeout = 20 * time.Second

// createAccess creates the account and stores its credentials in the binding's row. If the binding was removed during the
// creation, createAccess removes the account immediately, because the unbind operation may have finished before the account
// existed.
type createAccess struct {
	runtimes Runtimes
	bindings Bindings
}

// Name implements process.Step.
func (createAccess) Name() string { return "Create_Access" }

// Run implements process.Step.
func (s createAccess) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	binding := operation.Data.Binding
	operation.Description = "Access is being created"

	wanted, err := s.bindings.WantsBinding(ctx, binding.ID)
	if err != nil {
		return operation, 0, err
	}

	if !wanted {
		return operation, 0, errRemoved()
	}

	access, err := s.runtimes.Grant(ctx, operation.Data.Instance, binding)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()

	if err != nil {
		return operation, 0, s.failed(ctx, operation, err)
	}

	saved, err := s.bindings.SaveAccess(ctx, binding.ID, access)
	if err != nil {
		return operation, 0, s.failed(ctx, operation, err)
	}

	if !saved {
		return operation, 0, s.undo(ctx, operation)
	}

	operation.Description = "Access is ready"

	return operation, 0, nil
}

// failed handles a failed attempt, which may have created an account that only this replica knows of. If the binding was
// removed, failed removes the account. Otherwise it returns the cause.
func (s createAccess) failed(ctx context.Context, operation Operation, cause error) error {
	wanted, err := s.bindings.WantsBinding(ctx, operation.Data.Binding.ID)
	if err != nil || wanted {
		return cause
	}

	return s.undo(ctx, operation)
}

// undo removes the account of a removed binding.
func (s createAccess) undo(ctx context.Context, operation Operation) error {
	err := s.runtimes.Revoke(ctx, operation.Data.Instance, operation.Data.Binding)
	if err != nil && !failure.Is(err, failure.NotFound) {
		return err
	}

	return errRemoved()
}

// errRemoved returns the permanent error with which the operation of a removed binding fails.
func errRemoved() error {
	return failure.New(failure.Permanent, "the binding or its instance was removed before the access was ready").
		WithReason(failure.ReasonConflict, failure.ComponentBroker)
}
