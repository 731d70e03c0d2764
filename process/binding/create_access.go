package binding

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Once the ServiceAccount exists, createAccess makes the remaining calls even if the replica loses its lease, because another
// replica might not know about the ServiceAccount. createAccess repeats failed calls itself, because the engine does not retry a
// step after the lease is lost. cleanupTimeout limits the total time of these calls, and cleanupPause is the pause between two
// attempts.
const (
	cleanupTimeout = 20 * time.Second
	cleanupPause   = time.Second
)

// createAccess creates the ServiceAccount and then checks whether the binding still exists. If the binding was removed in the
// meantime, createAccess removes the ServiceAccount, because the unbind operation may have finished before the ServiceAccount
// existed. An unbind operation that starts after this check finds the ServiceAccount. The credentials are stored in the binding's
// row when the operation succeeds.
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

	// A failed call may also have created the ServiceAccount.
	lookup := repeat(ctx, func(ctx context.Context) (err error) {
		wanted, err = s.bindings.WantsBinding(ctx, binding.ID)

		return err
	})

	switch {
	case lookup == nil && !wanted:
		return operation, 0, s.undo(ctx, operation)
	case err != nil:
		return operation, 0, err
	case lookup != nil:
		return operation, 0, lookup
	}

	operation.Effect = s.bindings.SaveAccess(binding, access)
	operation.Description = "Access is ready"

	return operation, 0, nil
}

// undo removes the ServiceAccount of a removed binding. It returns errRemoved if that succeeds.
func (s createAccess) undo(ctx context.Context, operation Operation) error {
	err := repeat(ctx, func(ctx context.Context) error {
		return s.runtimes.Revoke(ctx, operation.Data.Instance, operation.Data.Binding)
	})
	if err != nil && !failure.Is(err, failure.NotFound) {
		return err
	}

	return errRemoved()
}

// repeat calls the function until it succeeds, fails with an error that is not retryable, or the context ends. It returns the
// last error.
func repeat(ctx context.Context, call func(context.Context) error) error {
	var last error

	_ = wait.PollUntilContextCancel(ctx, cleanupPause, true, func(ctx context.Context) (bool, error) {
		last = call(ctx)

		return last == nil || !failure.MappingOf(failure.KindOf(last)).Retry, nil
	})

	return last
}

// errRemoved returns the permanent error that fails the bind operation if its binding was removed.
func errRemoved() error {
	return failure.New(failure.Permanent, "the binding or its instance was removed before the access was ready").
		WithReason(failure.ReasonConflict, failure.ComponentBroker)
}
