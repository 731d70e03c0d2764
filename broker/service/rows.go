package service

import (
	"context"
	"errors"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// rows gives the steps what they need of the broker's tables, with errors that explain themselves.
type rows struct {
	stores

	clock clock.PassiveClock
}

// NewRows gives the processes the broker's tables.
func NewRows(db *storage.DB, operations *operations.Store, instances *instances.Store, bindings *bindings.Store, clock clock.PassiveClock) Rows {
	return rows{stores{db: db, operations: operations, instances: instances, bindings: bindings}, clock}
}

// Find returns the instance.
func (r rows) Find(ctx context.Context, id string) (environment.Instance, error) {
	instance, err := r.instances.Get(ctx, r.db.Reader(), id)

	return instance, explain(err, "the instance")
}

// SetRuntime records the runtime of the instance.
func (r rows) SetRuntime(ctx context.Context, by process.Record, instance environment.Instance, runtimeID string) error {
	return explain(r.instances.SetRuntime(ctx, by, instance, runtimeID), "the runtime of the instance")
}

// Delete removes the instance.
func (r rows) Delete(ctx context.Context, by process.Record, instance environment.Instance) error {
	return explain(r.instances.Delete(ctx, by, instance), "the instance")
}

// WantsBinding reports whether the binding is there and not being removed.
func (r rows) WantsBinding(ctx context.Context, id string) (bool, error) {
	wanted, err := r.bindings.Wanted(ctx, id)

	return wanted, explain(err, "the binding")
}

// SaveAccess stores the credentials of the binding, if it still wants them.
func (r rows) SaveAccess(ctx context.Context, id string, access environment.Access) (bool, error) {
	kept, err := r.bindings.SaveAccess(ctx, id, access)

	return kept, explain(err, "the access of the binding")
}

// RemoveBinding removes the binding.
func (r rows) RemoveBinding(ctx context.Context, id string) error {
	return explain(r.bindings.Delete(ctx, id), "the binding")
}

// Update records what an update made of the instance.
func (r rows) Update(ctx context.Context, by process.Record, instance environment.Instance, change environment.Update) error {
	return r.record(ctx, by, instance, change.Apply)
}

// Suspend records that the instance has no runtime any more, and the change that came with the suspension.
func (r rows) Suspend(ctx context.Context, by process.Record, instance environment.Instance, change *environment.Update) error {
	return r.record(ctx, by, instance, func(present environment.Instance) (environment.Instance, error) {
		present.Suspended, present.RuntimeID = true, ""

		if change == nil {
			return present, nil
		}

		return change.Apply(present)
	})
}

// Resume records that the instance has a runtime again.
func (r rows) Resume(ctx context.Context, by process.Record, instance environment.Instance) error {
	return r.record(ctx, by, instance, func(present environment.Instance) (environment.Instance, error) {
		present.Suspended = false

		return present, nil
	})
}

// record changes the instance's row as it is then. When the instance is gone, its id was given to another one since, or the operation's
// lease was lost, nothing is changed: later operations may have made something else of it while the replica was frozen.
func (r rows) record(ctx context.Context, by process.Record, known environment.Instance,
	change func(environment.Instance) (environment.Instance, error),
) error {
	err := r.db.InTx(ctx, func(tx storage.Tx) error {
		present, err := r.instances.Hold(ctx, tx, by, known, r.clock.Now())
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}

		if err != nil {
			return err
		}

		changed, err := change(present)
		if err != nil {
			return err
		}

		err = r.instances.Update(ctx, tx, changed)
		if storage.IsDuplicate(err) { // of all that is written only Exclusive may be another instance's
			return failure.Wrap(failure.Quota, err, "account %s has another instance of plan %s by now, and may have one: delete that, then retry",
				changed.GlobalAccountID, changed.PlanName).WithReason(failure.ReasonAlreadyExists, failure.ComponentBroker)
		}

		return err
	})
	if failure.Is(err, failure.Quota) {
		return err
	}

	return explain(err, "the instance")
}

// explain says which rows could not be read or written. Nil stays nil.
func explain(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrNotFound):
		return failure.Wrap(failure.Permanent, err, "%s is not in the database any more", what).
			WithReason(failure.ReasonNotFound, failure.ComponentBrokerDatabase)
	default:
		return failure.Wrap(failure.Transient, err, "%s cannot be read or written: the database does not answer as it should", what).
			WithReason(failure.ReasonInternal, failure.ComponentBrokerDatabase)
	}
}
