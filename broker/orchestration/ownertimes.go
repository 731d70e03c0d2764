package orchestration

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

// OwnerTimes stores the start times that the owners of instances choose for upgrades with a deadline. It is stateless and safe
// for concurrent use.
type OwnerTimes struct{ Orchestrations *orchestrations.Store }

// Choose sets the time of the instance's upgrade in each unfinished orchestration with a deadline in which the upgrade is
// pending. The upgrade then starts at this time, even outside of its maintenance window, or later if its wave, the limits or
// another operation of the instance require that. The transaction must not have locked an instance.
//
// The error is of kind Invalid if the time is in the past, before the earliest start or not before the deadline, and of kind
// Conflict if no such upgrade is pending. After these errors, nothing has changed.
func (t OwnerTimes) Choose(ctx context.Context, tx storage.Tx, instanceID string, at, now time.Time, by string) error {
	waiting, err := t.Orchestrations.WaitingFor(ctx, tx, instanceID)
	if err != nil {
		return err
	}

	var chosen []environment.Orchestration

	for _, orchestration := range waiting {
		if orchestration.State == environment.OrchestrationCanceling || orchestration.Parameters.Strategy.Deadline.IsZero() {
			continue
		}

		if err := checkTime(orchestration, at, now); err != nil {
			return err
		}

		chosen = append(chosen, orchestration)
	}

	notPending := failure.New(failure.Conflict, "The instance has no pending upgrade with a deadline. Only such an upgrade lets its owner choose a time.")
	if len(chosen) == 0 {
		return notPending
	}

	for _, orchestration := range chosen {
		// WaitingFor may have waited for a transaction that has started the upgrade.
		err := t.Orchestrations.ChooseTime(ctx, tx, orchestration.ID, instanceID, at, by)
		if errors.Is(err, storage.ErrNotFound) {
			return notPending
		}

		if err != nil {
			return err
		}

		if _, err := t.Orchestrations.WakeConductor(ctx, tx, orchestration.ID, now); err != nil {
			return err
		}
	}

	return nil
}

// checkTime rejects a time at which the orchestration could not start the upgrade.
func checkTime(orchestration environment.Orchestration, at, now time.Time) error {
	strategy := orchestration.Parameters.Strategy

	switch {
	case at.Before(now):
		return failure.New(failure.Invalid, "The time of the upgrade is in the past.")
	case !at.Before(strategy.Deadline):
		return failure.New(failure.Invalid, "The time of the upgrade must be before its deadline, %s.", strategy.Deadline.UTC().Format(time.RFC3339))
	case at.Before(strategy.ScheduleTime):
		return failure.New(failure.Invalid, "The upgrade cannot start before %s.", strategy.ScheduleTime.UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

// ChooseTime is OwnerTimes.Choose for an operator who acts on behalf of the instance's owner. It also records the change in the
// audit log.
func (o Orders) ChooseTime(ctx context.Context, instanceID string, at time.Time) error {
	err := o.DB.InTx(ctx, func(tx storage.Tx) error {
		if err := (OwnerTimes{o.Orchestrations}).Choose(ctx, tx, instanceID, at, o.Clock.Now(), audit.ActorOf(ctx).Name()); err != nil {
			return err
		}

		return o.Recorder.Record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionUpdate, InstanceID: instanceID, Status: http.StatusOK, After: auditlog.Fields{"upgradeTime": at},
		})
	})
	if err == nil {
		o.Wake()
	}

	return err
}
