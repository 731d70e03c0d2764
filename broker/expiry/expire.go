package expiry

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// Expirer has instances expire.
type Expirer struct {
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	Periods    Periods
	// Trail is where it is written down that an instance was made to expire.
	Trail *audit.Trail
	// Wake has the engine look for due operations. It is called after a commit.
	Wake  func()
	Clock clock.PassiveClock
}

// Expire has an instance expire, and begins to remove its runtime. It returns the operation that does this, empty when the runtime is gone
// already. Repeated, it returns the same operation while that runs, and begins another one when that has failed. Operations of the
// instance that are under way end before. The errors are of package failure, or the database's.
func (e Expirer) Expire(ctx context.Context, instanceID, why string) (string, error) {
	var (
		operation string
		accepted  bool
	)

	err := e.DB.InTx(ctx, func(tx storage.Tx) error {
		var err error

		operation, accepted, err = e.expire(ctx, tx, instanceID, why)
		if err != nil || !accepted {
			return err
		}

		return e.Trail.Record(ctx, tx, audit.Entry{
			Action: audit.Expire, InstanceID: instanceID, OperationID: operation, Status: http.StatusAccepted, Reason: why,
		})
	})

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "", failure.New(failure.NotFound, "There is no such instance.")
	case storage.IsDuplicate(err):
		return "", failure.Wrap(failure.Conflict, err, "Another request for the instance was faster. Try again.")
	}

	if accepted {
		e.Wake()
	}

	return operation, err
}

// expire decides inside the transaction. To touch the instance first makes everybody else who decides on it take turns.
func (e Expirer) expire(ctx context.Context, tx storage.Tx, id, why string) (operation string, accepted bool, err error) {
	now := e.Clock.Now()

	there, err := e.Instances.Touch(ctx, tx, id, now)
	if err != nil {
		return "", false, err
	}

	if !there {
		return "", false, storage.ErrNotFound
	}

	instance, err := e.Instances.Get(ctx, tx, id)
	if err != nil {
		return "", false, err
	}

	if !e.Periods.Has(instance.PlanName) {
		return "", false, failure.New(failure.Invalid, "Instances of plan %s do not expire.", instance.PlanName)
	}

	past, err := e.Operations.OfInstance(ctx, tx, id)
	if err != nil {
		return "", false, err
	}

	standing := environment.StandingOf(past)
	if standing == environment.Deleting || standing == environment.DeletionFailed {
		return "", false, failure.New(failure.Conflict, "The instance is being deleted, or its deletion failed: delete it.")
	}

	instance = expired(instance, now)
	if err := e.Instances.Update(ctx, tx, instance); err != nil {
		return "", false, err
	}

	for _, unfinished := range environment.Unfinished(past) {
		if unfinished.Kind == environment.KindSuspend {
			return unfinished.ID, false, nil
		}
	}

	if standing == environment.Suspended {
		return "", false, nil
	}

	return e.suspend(ctx, tx, instance, why, now)
}

// suspend accepts the operation that removes the runtime.
func (e Expirer) suspend(ctx context.Context, tx storage.Tx, instance environment.Instance, why string, now time.Time,
) (operation string, accepted bool, err error) {
	suspension, err := environment.NewOperation(environment.KindSuspend, instance, nil, now)
	if err != nil {
		return "", false, err
	}

	suspension.Why, suspension.OrderedBy, suspension.Trace = why, audit.ActorOf(ctx).Name(), tracing.Carry(ctx)

	return suspension.ID, true, e.Operations.Accept(ctx, tx, suspension)
}

// expired returns the instance as one that has expired, now or before.
func expired(instance environment.Instance, now time.Time) environment.Instance {
	now = storage.At(now).Time

	if instance.ExpiredAt.IsZero() {
		instance.ExpiredAt = now
	}

	if instance.ExpiresAt.IsZero() || instance.ExpiresAt.After(now) {
		instance.ExpiresAt = now // also what an operator has expire is seen to by ExpireDue when its suspension fails
	}

	return instance
}

// failedLately reports whether a suspension of the instance has failed since the moment.
func failedLately(past []process.Record, since time.Time) bool {
	for _, operation := range past {
		if operation.Kind == environment.KindSuspend {
			return operation.State.Terminal() && operation.State != process.Succeeded && operation.FinishedAt.After(since)
		}
	}

	return false
}
