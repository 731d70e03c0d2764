// Package expiry ends the instances of plans with a limited lifetime: it removes their runtimes and keeps the
// instances until they are deleted. Periods configures the plans. Expirer expires single instances for
// operators and, in the background, all instances that are due.
//
// An expired instance stays expired: no update or resumption brings its runtime back. Expiring an instance is
// idempotent, so any number of replicas may search for due instances at the same time. A suspension that fails
// is retried every hour until it succeeds.
package expiry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/lifecycle"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// checkEvery is the interval between two searches for due instances.
	checkEvery = 5 * time.Minute
	// retryAfter is the pause after a failed suspension, whose cause usually needs an operator.
	retryAfter = time.Hour
	// pageSize is the number of due instances that one query returns.
	pageSize = 100

	// reasonDue is the reason in the audit log.
	reasonDue = "the lifetime of the instance is over"
)

// Periods maps the names of plans to the lifetime of their instances. Only instances of these plans may be
// suspended and expire. With the lifetime 0, instances expire only when an operator expires them.
type Periods map[string]time.Duration

// Has reports whether instances of the plan may be suspended and expire.
func (p Periods) Has(plan string) bool {
	_, has := p[plan]

	return has
}

// End returns the time at which an instance of the plan expires, zero for never. A new configuration does not
// change existing instances.
func (p Periods) End(plan string, created time.Time) time.Time {
	if p[plan] == 0 {
		return time.Time{}
	}

	return created.Add(p[plan])
}

// Check rejects negative lifetimes and empty names. It does not know the catalog, so it accepts unknown plans.
func (p Periods) Check() error {
	for plan, period := range p {
		if period < 0 || strings.TrimSpace(plan) == "" {
			return fmt.Errorf("plan %q with %s: must be plan:duration with a duration that is not negative", plan, period)
		}
	}

	return nil
}

// Expirer expires instances. It has no state of its own and is safe for concurrent use.
type Expirer struct {
	// DB is the database of the stores, so that the instance and the suspension are written in one transaction.
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	Periods    Periods
	// Recorder records each expiry.
	Recorder *audit.Recorder
	// Wake makes the engine look for due operations. It is called after a commit and must not block.
	Wake  func()
	Clock clock.PassiveClock
}

// Expire marks an instance as expired and accepts a suspension, which runs after the unfinished operations of
// the instance. It returns the ID of the suspension, empty if the runtime is already gone. A repeated call
// returns the same suspension while it runs, and accepts another one after it failed. The reason goes to the
// audit log and to the timeline of the suspension. Errors are of package failure, or those of the database:
// NotFound without the instance, Invalid if the plan has no lifetime, Conflict during a deletion.
func (e Expirer) Expire(ctx context.Context, instanceID, reason string) (string, error) {
	var done outcome

	err := e.DB.InTx(ctx, func(tx storage.Tx) error {
		var err error

		done, err = e.expire(ctx, tx, instanceID, reason)
		if err != nil || !done.accepted && !done.expired {
			return err
		}

		status := http.StatusOK
		if done.accepted {
			status = http.StatusAccepted
		}

		return e.Recorder.Record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionExpire, InstanceID: instanceID, OperationID: done.operation, Status: status, Reason: reason,
		})
	})

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "", failure.New(failure.NotFound, "The instance does not exist.")
	case storage.IsDuplicate(err):
		return "", failure.Wrap(failure.Conflict, err, "A concurrent request for the instance was faster. Try again.")
	}

	if done.accepted {
		e.Wake()
	}

	return done.operation, err
}

// outcome is the result of a decision.
type outcome struct {
	// operation is the suspension, empty if the runtime is already gone.
	operation string
	// accepted reports that the suspension is new.
	accepted bool
	// expired reports that this call has expired the instance, which is false for a repeated call.
	expired bool
}

// expire decides inside the transaction. Touching the instance first serializes concurrent decisions.
func (e Expirer) expire(ctx context.Context, tx storage.Tx, id, reason string) (outcome, error) {
	now := e.Clock.Now()

	present, err := e.Instances.Touch(ctx, tx, id, now)
	if err != nil {
		return outcome{}, err
	}

	if !present {
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

	phase := environment.PhaseOf(past)
	if phase == environment.Deleting || phase == environment.DeletionFailed {
		return outcome{}, failure.New(failure.Conflict, "The instance is being deleted, or its deletion failed. Delete it again.")
	}

	done := outcome{expired: instance.ExpiredAt.IsZero()}

	instance = expired(instance, now)
	instance.Suspended = phase == environment.Suspended // a failed resumption may have created a runtime

	if err := e.Instances.Update(ctx, tx, instance); err != nil {
		return outcome{}, err
	}

	for _, unfinished := range environment.Unfinished(past) {
		if unfinished.Kind == environment.KindSuspend {
			done.operation = unfinished.ID

			return done, nil
		}
	}

	if phase == environment.Suspended {
		return done, nil
	}

	done.operation, err = e.suspend(ctx, tx, instance, reason, now)
	done.accepted = err == nil

	return done, err
}

// suspend accepts the operation that removes the runtime, and returns its ID.
func (e Expirer) suspend(ctx context.Context, tx storage.Tx, instance environment.Instance, reason string, now time.Time,
) (string, error) {
	suspension, err := environment.NewOperation(environment.KindSuspend, instance, nil, now)
	if err != nil {
		return "", err
	}

	suspension.Why, suspension.OrderedBy, suspension.Trace = reason, audit.ActorOf(ctx).Name(), tracing.Carry(ctx)

	return suspension.ID, e.Operations.Accept(ctx, tx, suspension)
}

// expired returns the instance with the times of an expired one. An instance that has expired before keeps its time.
func expired(instance environment.Instance, now time.Time) environment.Instance {
	now = storage.At(now).Time

	if instance.ExpiredAt.IsZero() {
		instance.ExpiredAt = now
	}

	if instance.ExpiresAt.IsZero() || instance.ExpiresAt.After(now) {
		instance.ExpiresAt = now // ExpireDue retries the suspension if it fails, also after an operator expired the instance
	}

	return instance
}

// Part returns the part that calls ExpireDue periodically. It may run on any number of replicas: each instance
// gets one suspension.
func (e Expirer) Part(clock clock.WithTicker, log logrus.FieldLogger) lifecycle.Part {
	return lifecycle.Periodic{
		Name: "expiry", Every: checkEvery, Clock: clock, Log: log,
		Work: e.ExpireDue,
	}.Part()
}

// ExpireDue expires all instances whose lifetime is over, each in a transaction of its own. It continues after
// the error of an instance, and returns the joined errors.
func (e Expirer) ExpireDue(ctx context.Context) error {
	var failed []error

	for after := ""; ; {
		ids, err := e.Instances.Expiring(ctx, e.Clock.Now(), after, pageSize)
		if err != nil || len(ids) == 0 {
			return errors.Join(append(failed, err)...)
		}

		for _, id := range ids {
			if err := e.expireDue(ctx, id); err != nil {
				failed = append(failed, fmt.Errorf("instance %s: %w", id, err))
			}
		}

		after = ids[len(ids)-1]
	}
}

// expireDue expires one instance, unless its last suspension failed less than retryAfter ago. Instances that an
// update or a deletion has changed since the search are skipped.
func (e Expirer) expireDue(ctx context.Context, id string) error {
	past, err := e.Operations.OfInstance(ctx, e.DB.Reader(), id)
	if err != nil || failedSince(past, e.Clock.Now().Add(-retryAfter)) {
		return err
	}

	_, err = e.Expire(ctx, id, reasonDue)
	if failure.Is(err, failure.Conflict) || failure.Is(err, failure.NotFound) || failure.Is(err, failure.Invalid) {
		return nil // being deleted, or its plan has no limit any more
	}

	return err
}

// failedSince reports whether the last suspension of the instance failed after the given time.
func failedSince(past []process.Record, since time.Time) bool {
	for _, operation := range past {
		if operation.Kind == environment.KindSuspend {
			return operation.State.Terminal() && operation.State != process.Succeeded && operation.FinishedAt.After(since)
		}
	}

	return false
}
