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
	"github.com/environment-broker/environment-broker/storage/auditlog"
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
	Trail *audit.Recorder
	// Wake has the engine look for due operations. It is called after a commit.
	Wake  func()
	Clock clock.PassiveClock
}

// Expire has an instance expire, and begins to remove its runtime. It returns the operation that does this, empty when the runtime is gone
// already. Repeated, it returns the same operation while that runs, and begins another one when that has failed. Operations of the
// instance that are under way end before. The errors are of package failure, or the database's.
func (e Expirer) Expire(ctx context.Context, instanceID, why string) (string, error) {
	var done outcome

	err := e.DB.InTx(ctx, func(tx storage.Tx) error {
		var err error

		done, err = e.expire(ctx, tx, instanceID, why)
		if err != nil || !done.accepted && !done.expired {
			return err
		}

		status := http.StatusOK
		if done.accepted {
			status = http.StatusAccepted
		}

		return e.Trail.Record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionExpire, InstanceID: instanceID, OperationID: done.operation, Status: status, Reason: why,
		})
	})

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "", failure.New(failure.NotFound, "There is no such instance.")
	case storage.IsDuplicate(err):
		return "", failure.Wrap(failure.Conflict, err, "Another request for the instance was faster. Try again.")
	}

	if done.accepted {
		e.Wake()
	}

	return done.operation, err
}

// outcome is what came of it.
type outcome struct {
	// operation removes the runtime, or does so already; it is empty when the runtime is gone.
	operation string
	// accepted says that the operation is new, expired that the instance had not expired before.
	accepted, expired bool
}

// expire decides inside the transaction. To touch the instance first makes everybody else who decides on it take turns.
func (e Expirer) expire(ctx context.Context, tx storage.Tx, id, why string) (outcome, error) {
	now := e.Clock.Now()

	there, err := e.Instances.Touch(ctx, tx, id, now)
	if err != nil {
		return outcome{}, err
	}

	if !there {
		return outcome{}, storage.ErrNotFound
	}

	instance, err := e.Instances.Get(ctx, tx, id)
	if err != nil {
		return outcome{}, err
	}

	if !e.Periods.Has(instance.PlanName) {
		return outcome{}, failure.New(failure.Invalid, "Instances of plan %s do not expire.", instance.PlanName)
	}

	past, err := e.Operations.OfInstance(ctx, tx, id)
	if err != nil {
		return outcome{}, err
	}

	standing := environment.PhaseOf(past)
	if standing == environment.Deleting || standing == environment.DeletionFailed {
		return outcome{}, failure.New(failure.Conflict, "The instance is being deleted, or its deletion failed: delete it.")
	}

	done := outcome{expired: instance.ExpiredAt.IsZero()}

	instance = expired(instance, now)
	instance.Suspended = standing == environment.Suspended // a resumption that failed may have made a runtime

	if err := e.Instances.Update(ctx, tx, instance); err != nil {
		return outcome{}, err
	}

	for _, unfinished := range environment.Unfinished(past) {
		if unfinished.Kind == environment.KindSuspend {
			done.operation = unfinished.ID

			return done, nil
		}
	}

	if standing == environment.Suspended {
		return done, nil
	}

	done.operation, err = e.suspend(ctx, tx, instance, why, now)
	done.accepted = err == nil

	return done, err
}

// suspend accepts the operation that removes the runtime.
func (e Expirer) suspend(ctx context.Context, tx storage.Tx, instance environment.Instance, why string, now time.Time,
) (string, error) {
	suspension, err := environment.NewOperation(environment.KindSuspend, instance, nil, now)
	if err != nil {
		return "", err
	}

	suspension.Why, suspension.OrderedBy, suspension.Trace = why, audit.ActorOf(ctx).Name(), tracing.Carry(ctx)

	return suspension.ID, e.Operations.Accept(ctx, tx, suspension)
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
