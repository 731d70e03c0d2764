// Package expiry expires instances of plans with a limited lifetime: it removes the runtime but keeps the instance
// until the platform deletes it. Periods configures the plans. Expirer expires single instances for operators, and its
// job expires all instances that are due.
//
// An expired instance stays expired: no update or resumption restores its runtime. Expiring an instance is idempotent,
// so any number of replicas can search for due instances at the same time. A failed suspension is retried every hour
// until it succeeds.
package expiry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/jobs"
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

const (
	// checkEvery is the interval between two searches for due instances.
	checkEvery = 5 * time.Minute
	// retryAfter is the pause after a failed suspension. It is long because an operator usually has to fix the
	// cause.
	retryAfter = time.Hour
	// pageSize is the maximum number of due instances that one query returns.
	pageSize = 100

	// reasonDue is the reason in the audit log when an instance expires in the background.
	reasonDue = "the lifetime of the instance has ended"
)

// Periods maps names of plans to the lifetime of their instances. Only instances of these plans can be suspended
// and can expire. If the lifetime is 0, only operators can expire instances.
type Periods map[string]time.Duration

// Has reports whether instances of the plan can be suspended and can expire.
func (p Periods) Has(plan string) bool {
	_, has := p[plan]

	return has
}

// End returns the time at which an instance of the plan expires, or zero if it never does. Changes of the
// configuration do not affect existing instances.
func (p Periods) End(plan string, created time.Time) time.Time {
	if p[plan] == 0 {
		return time.Time{}
	}

	return created.Add(p[plan])
}

// Check returns an error for negative lifetimes and empty names. It accepts unknown plans, because it has no access
// to the catalog.
func (p Periods) Check() error {
	for plan, period := range p {
		if period < 0 || strings.TrimSpace(plan) == "" {
			return fmt.Errorf("plan %q with duration %s: the name must not be empty and the duration must not be negative", plan, period)
		}
	}

	return nil
}

// Expirer marks instances as expired and removes their runtimes. It is stateless and safe for concurrent use.
type Expirer struct {
	// DB is the database that all stores use. An instance and its suspension are written in one transaction.
	DB         *storage.DB
	Instances  *instances.Store
	Operations *operations.Store
	Periods    Periods
	// Recorder writes each expiry to the audit log.
	Recorder *audit.Recorder
	// Wake makes the engine look for due operations. It is called after a commit and must not block.
	Wake  func()
	Clock clock.PassiveClock
}

// Expire marks an instance as expired and accepts a suspension, which runs after the unfinished operations of the
// instance. It returns the ID of the suspension, or an empty string if the runtime is already gone. If Expire is
// called again, it returns the running suspension, or accepts a new one if the last one failed. The audit log and
// the timeline of the suspension contain the reason.
//
// Apart from errors of the database, the error is of kind failure.NotFound if the instance does not exist,
// failure.Invalid if its plan is not in Periods and the instance has not expired before, and failure.Conflict if the instance is
// being deleted, if its deletion failed, or if a concurrent request was faster.
func (e Expirer) Expire(ctx context.Context, instanceID, reason string) (string, error) {
	done, err := e.expireIf(ctx, instanceID, reason, always)

	return done.operation, err
}

// condition reports whether an instance with these operations still has to expire. It runs in the transaction that expires the instance.
type condition func(ctx context.Context, tx storage.Tx, instance environment.Instance, past []process.Record) (bool, error)

// always is the condition for requests of operators.
func always(context.Context, storage.Tx, environment.Instance, []process.Record) (bool, error) {
	return true, nil
}

// expireIf is Expire, but does nothing and returns the zero outcome if the condition does not hold.
func (e Expirer) expireIf(ctx context.Context, instanceID, reason string, holds condition) (done outcome, err error) {
	err = e.DB.InTx(ctx, func(tx storage.Tx) error {
		done, err = e.expire(ctx, tx, instanceID, reason, holds)
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
		return outcome{}, failure.New(failure.NotFound, "The instance does not exist.")
	case storage.IsDuplicate(err):
		return outcome{}, failure.Wrap(failure.Conflict, err, "Another request changed the instance first. Try again.")
	}

	if done.accepted {
		e.Wake()
	}

	return done, err
}

// outcome is the result of a call to expire.
type outcome struct {
	// operation is the ID of the suspension. It is empty if the runtime is already gone.
	operation string
	// accepted reports whether this call accepted the suspension.
	accepted bool
	// expired reports whether this call marked the instance as expired. It is false for a repeated call.
	expired bool
}

// expire does the work of expireIf inside the transaction. It touches the instance first, so that concurrent calls
// run one after another.
func (e Expirer) expire(ctx context.Context, tx storage.Tx, id, reason string, holds condition) (outcome, error) {
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

	if !e.Periods.Has(instance.PlanName) && !instance.Expired() { // an expired instance can only be deleted, whatever the configuration
		return outcome{}, failure.New(failure.Invalid, "Instances of plan %s do not expire.", instance.PlanName)
	}

	past, err := e.Operations.OfInstance(ctx, tx, id)
	if err != nil {
		return outcome{}, err
	}

	if due, err := holds(ctx, tx, instance, past); err != nil || !due {
		return outcome{}, err
	}

	phase := environment.PhaseOf(past)
	if phase == environment.Deleting || phase == environment.DeletionFailed {
		return outcome{}, failure.New(failure.Conflict, "The instance is being deleted, or its deletion failed. If it failed, delete the instance again.")
	}

	done := outcome{expired: instance.ExpiredAt.IsZero()}

	instance = expired(instance, now)
	instance.Suspended = phase == environment.Suspended // a failed resumption may have left a runtime

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

// suspend accepts a suspension, which removes the runtime, and returns its ID.
func (e Expirer) suspend(ctx context.Context, tx storage.Tx, instance environment.Instance, reason string, now time.Time,
) (string, error) {
	suspension, err := environment.NewOperation(environment.KindSuspend, instance, nil, now)
	if err != nil {
		return "", err
	}

	suspension.Why, suspension.OrderedBy, suspension.Trace = reason, audit.ActorOf(ctx).Name(), tracing.Traceparent(ctx)

	return suspension.ID, e.Operations.Accept(ctx, tx, suspension)
}

// expired returns the instance marked as expired. An instance that had already expired keeps the time of its expiry.
func expired(instance environment.Instance, now time.Time) environment.Instance {
	now = storage.At(now).Time

	if instance.ExpiredAt.IsZero() {
		instance.ExpiredAt = now
	}

	if instance.ExpiresAt.IsZero() || instance.ExpiresAt.After(now) {
		instance.ExpiresAt = now // due now, so that the job retries a failed suspension of an instance that an operator expired
	}

	return instance
}

// Job returns the job that expires all instances that have reached the end of their lifetime, each in a separate transaction.
func (e Expirer) Job(limit int) jobs.Job {
	return jobs.Job{
		Name: "expiry", Description: "Expire the instances whose lifetime has ended: remove their clusters, and keep the instances.",
		Items: "instances", Every: checkEvery, Limit: limit, Reason: reasonDue, Due: e.due,
		Protection: "Deletion protection has no effect: the clusters are removed, and the instances are kept.",
	}
}

// due returns the instances that have reached the end of their lifetime and can expire now.
func (e Expirer) due(ctx context.Context) (jobs.Due, error) {
	var due jobs.Due

	for after := ""; ; {
		page, err := e.Instances.Expiring(ctx, e.Clock.Now(), after, pageSize)
		if err != nil || len(page) == 0 {
			return due, err
		}

		for _, each := range page {
			now, err := e.dueNow(ctx, each)
			if err != nil {
				return due, err
			}

			if now {
				due.Items = append(due.Items, jobs.Item{ID: each.ID, InstanceID: each.ID, Do: func(ctx context.Context, reason string) (bool, error) {
					return e.expireDue(ctx, each.ID, reason)
				}})
			}
		}

		after = page[len(page)-1].ID
	}
}

// dueNow reports whether an instance can expire now. It is false if the last suspension failed or was canceled less than retryAfter ago.
// Unless the instance has expired before, it is also false if the plan is no longer in Periods, or if an unfinished update prolongs the
// lifetime.
func (e Expirer) dueNow(ctx context.Context, instance instances.Expiring) (bool, error) {
	if !instance.Expired && !e.Periods.Has(instance.PlanName) {
		return false, nil
	}

	past, err := e.Operations.OfInstance(ctx, e.DB.Reader(), instance.ID)
	if err != nil || failedSince(past, e.Clock.Now().Add(-retryAfter)) || !e.expires(past) {
		return false, err
	}

	if instance.Expired {
		return true, nil
	}

	prolonged, err := e.prolonged(ctx, e.DB.Reader(), past)

	return !prolonged && err == nil, err
}

// expires reports whether an instance with these operations can expire now: it is neither being deleted nor being suspended, and its
// deletion has not failed.
func (Expirer) expires(past []process.Record) bool {
	if phase := environment.PhaseOf(past); phase == environment.Deleting || phase == environment.DeletionFailed {
		return false
	}

	return !slices.ContainsFunc(environment.Unfinished(past), func(operation process.Record) bool {
		return operation.Kind == environment.KindSuspend
	})
}

// expireDue expires one instance. It does nothing if the instance is being deleted, if its plan is not in Periods, or if stillDue reports
// false.
func (e Expirer) expireDue(ctx context.Context, id, reason string) (changed bool, err error) {
	done, err := e.expireIf(ctx, id, reason, e.stillDue)
	if failure.Is(err, failure.Conflict) || failure.Is(err, failure.NotFound) || failure.Is(err, failure.Invalid) {
		return false, nil
	}

	return err == nil && (done.accepted || done.expired), failure.While(err, "expiring instance %s", id)
}

// stillDue is the condition for the job, which has listed the instance earlier. Meanwhile, an update may have changed the plan of the
// instance, or be about to. The job then decides again when the update has ended.
func (e Expirer) stillDue(ctx context.Context, tx storage.Tx, instance environment.Instance, past []process.Record) (bool, error) {
	if instance.Expired() {
		return true, nil
	}

	if instance.ExpiresAt.IsZero() || instance.ExpiresAt.After(e.Clock.Now()) {
		return false, nil
	}

	prolonged, err := e.prolonged(ctx, tx, past)

	return !prolonged, err
}

// prolonged reports whether an unfinished update changes the plan to one with which the instance does not expire yet. An update whose data
// cannot be decrypted does not count: it will fail.
func (e Expirer) prolonged(ctx context.Context, tx storage.Tx, past []process.Record) (bool, error) {
	for _, unfinished := range environment.Unfinished(past) {
		if unfinished.Kind != environment.KindUpdate {
			continue
		}

		payload, err := e.Operations.Payload(ctx, tx, unfinished.ID)
		if errors.Is(err, operations.ErrSealed) {
			continue
		}

		if err != nil {
			return false, err
		}

		var data environment.Data
		if err := json.Unmarshal(payload, &data); err != nil {
			return false, fmt.Errorf("decoding the data of operation %s: %w", unfinished.ID, err)
		}

		if data.Update != nil && (data.Update.ExpiresAt.IsZero() || data.Update.ExpiresAt.After(e.Clock.Now())) {
			return true, nil
		}
	}

	return false, nil
}

// failedSince reports whether the last suspension of the instance failed or was canceled after the given time.
func failedSince(past []process.Record, since time.Time) bool {
	for _, operation := range past {
		if operation.Kind == environment.KindSuspend {
			return operation.State.Terminal() && operation.State != process.Succeeded && operation.FinishedAt.After(since)
		}
	}

	return false
}
