package binding

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// cleanupTimeout limits the calls that follow the creation of the account. They run even if the replica has lost its lease,
// because another replica may not know about the account.
const cleanupTimeout = 20 * time.Second

// createAccess creates the account. The credentials are stored in the binding's row when the operation succeeds. If the binding was
// removed during the creation, createAccess removes the account immediately, because the unbind operation may have finished before
// the account existed. An unbind that starts after this check finds the account.
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

	// A failed call may have created an account too.
	wanted, lookup := s.bindings.WantsBinding(ctx, binding.ID)

	switch {
	case lookup == nil && !wanted:
		return operation, 0, s.undo(ctx, operation)
	case err != nil:
		return operation, 0, err
	case lookup != nil:
		return operation, 0, lookup
	}

	operation.Effect = s.bindings.SaveAccess(binding.ID, access)
	operation.Description = "Access is ready"

	return operation, 0, nil
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
