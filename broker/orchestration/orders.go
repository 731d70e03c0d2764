package orchestration

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/broker/upgrade"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
	"github.com/environment-broker/environment-broker/storage/operations"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

// Orders accepts orchestrations, and changes to them. It is stateless and safe for concurrent use. All fields are required.
// Errors come from the database or carry a failure.Kind.
type Orders struct {
	// DB is the database that the stores use.
	DB             *storage.DB
	Orchestrations *orchestrations.Store
	Operations     *operations.Store
	// Planner selects the targets of plans.
	Planner Planner
	// Recorder writes each change to the audit log.
	Recorder *audit.Recorder
	// Wake makes the engine look for due operations. It is called after a commit and must not block.
	Wake  func()
	Clock clock.PassiveClock
}

// Create accepts an orchestration and returns its ID. kind is one of environment.UpgradeKinds. The error is of kind Invalid if a
// parameter is invalid.
func (o Orders) Create(ctx context.Context, kind string, parameters fleet.Parameters) (id string, err error) {
	now := o.Clock.Now()

	parameters, err = completed(kind, parameters, now)
	if err != nil {
		return "", err
	}

	orchestration := newOrchestration(ctx, kind, parameters, now)

	return orchestration.ID, o.change(ctx, func(tx storage.Tx) error {
		if err := o.Orchestrations.Insert(ctx, tx, orchestration); err != nil {
			return err
		}

		if err := o.conduct(ctx, tx, orchestration.ID, ""); err != nil {
			return err
		}

		return o.record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionOrchestrate, OperationID: orchestration.ID,
			After: auditlog.Fields{"kind": kind, "dryRun": parameters.DryRun, "targets": parameters.Targets, "scheduleTime": parameters.Strategy.ScheduleTime},
		})
	})
}

// completed returns the parameters with their defaults. The error is of kind Invalid if a parameter is invalid.
func completed(kind string, parameters fleet.Parameters, now time.Time) (fleet.Parameters, error) {
	parameters, err := parameters.Complete(now)
	if mistake, is := errors.AsType[*fleet.ValidationError](err); is {
		return parameters, failure.New(failure.Invalid, "%s", mistake)
	}

	return parameters, cmp.Or(err, upgrade.CheckVersion(kind, version(kind, parameters)))
}

func newOrchestration(ctx context.Context, kind string, parameters fleet.Parameters, now time.Time) environment.Orchestration {
	return environment.Orchestration{
		ID: uuid.NewString(), Kind: kind, State: environment.OrchestrationPending, Description: "Orchestration created", Parameters: parameters,
		OrderedBy: audit.ActorOf(ctx).Name(), CreatedAt: now, UpdatedAt: now,
	}
}

// change runs work in a transaction and wakes the engine after the commit.
func (o Orders) change(ctx context.Context, work func(tx storage.Tx) error) error {
	err := o.DB.InTx(ctx, work)
	if err == nil {
		o.Wake()
	}

	return known(err)
}

// known converts storage.ErrNotFound to an error of kind NotFound, whose text clients may see.
func known(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return failure.New(failure.NotFound, "The orchestration does not exist.")
	}

	return err
}

// conduct accepts a new operation that conducts the orchestration.
func (o Orders) conduct(ctx context.Context, tx storage.Tx, id, why string) error {
	conductor, err := environment.NewConductor(id, o.Clock.Now())
	if err != nil {
		return err
	}

	conductor.Why, conductor.OrderedBy, conductor.Trace = why, audit.ActorOf(ctx).Name(), tracing.Traceparent(ctx)

	return o.Operations.Accept(ctx, tx, conductor)
}

// wake makes the conductor of the orchestration due. If the conductor has ended, wake accepts a new one.
func (o Orders) wake(ctx context.Context, tx storage.Tx, id, why string) error {
	unfinished, err := o.Orchestrations.WakeConductor(ctx, tx, id, o.Clock.Now())
	if err != nil || unfinished {
		return err
	}

	return o.conduct(ctx, tx, id, why)
}

func (o Orders) record(ctx context.Context, tx storage.Tx, entry auditlog.Entry) error {
	entry.Status = http.StatusAccepted

	return o.Recorder.Record(ctx, tx, entry)
}

// Cancel cancels an orchestration: no more upgrades start, and those in progress run to completion. A plan is canceled immediately.
// Cancel does nothing if the orchestration has ended or is being canceled. The error is of kind NotFound if there is no such
// orchestration.
func (o Orders) Cancel(ctx context.Context, id string) error {
	return o.change(ctx, func(tx storage.Tx) error {
		orchestration, err := o.Orchestrations.Lock(ctx, tx, id)
		if err != nil || orchestration.State.Ended() || orchestration.State == environment.OrchestrationCanceling {
			return err
		}

		state := environment.OrchestrationCanceling

		if orchestration.State == environment.OrchestrationPlanned { // a plan has no conductor
			state = environment.OrchestrationCanceled
			err = o.Orchestrations.CancelPending(ctx, tx, id, textCanceled)
		} else {
			err = o.wake(ctx, tx, id, "canceled")
		}

		if err != nil {
			return err
		}

		if err := o.Orchestrations.SetState(ctx, tx, id, state, orchestration.Description, o.Clock.Now()); err != nil {
			return err
		}

		return o.record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionCancel, OperationID: id, Before: auditlog.Fields{"state": orchestration.State}, After: auditlog.Fields{"state": state},
		})
	})
}
