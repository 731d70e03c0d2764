package binding

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// settling bounds what follows the making of an account, also where the replica has lost its lease meanwhile.
const settling = 20 * time.Second

// createAccess makes the account, whose intent is the binding's row, and stores its credentials there. When the binding was removed
// meanwhile, what came too late goes at once: its removal may have passed.
type createAccess struct {
	runtimes Runtimes
	bindings Bindings
}

// Name implements process.Step.
func (createAccess) Name() string { return "Create_Access" }

// Run implements process.Step.
func (s createAccess) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	binding := operation.Data.Binding
	operation.Description = "Access is being made"

	wanted, err := s.bindings.WantsBinding(ctx, binding.ID)
	if err != nil {
		return operation, 0, err
	}

	if !wanted {
		return operation, 0, unwanted()
	}

	access, err := s.runtimes.Grant(ctx, operation.Data.Instance, binding)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settling)
	defer cancel()

	if err != nil {
		return operation, 0, s.failed(ctx, operation, err)
	}

	kept, err := s.bindings.KeepAccess(ctx, binding.ID, access)
	if err != nil {
		return operation, 0, s.failed(ctx, operation, err)
	}

	if !kept {
		return operation, 0, s.undo(ctx, operation)
	}

	operation.Description = "Access is ready"

	return operation, 0, nil
}

// failed looks whether the binding is wanted still: an attempt that failed may have made something all the same, and this replica may be
// the only one that knows.
func (s createAccess) failed(ctx context.Context, operation Operation, cause error) error {
	wanted, err := s.bindings.WantsBinding(ctx, operation.Data.Binding.ID)
	if err != nil || wanted {
		return cause
	}

	return s.undo(ctx, operation)
}

// undo removes what nobody wants any more.
func (s createAccess) undo(ctx context.Context, operation Operation) error {
	err := s.runtimes.Revoke(ctx, operation.Data.Instance, operation.Data.Binding)
	if err != nil && !failure.Is(err, failure.NotFound) {
		return err
	}

	return unwanted()
}

func unwanted() error {
	return failure.New(failure.Permanent, "the binding was removed, or its instance was, before it was ready").
		WithReason(failure.ReasonConflict, failure.ComponentBroker)
}
