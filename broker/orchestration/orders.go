package orchestration

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/google/uuid"
	"k8s.io/utils/clock"

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
	// DB is the database of the stores.
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

// Create accepts an orchestration of one of the environment.UpgradeKinds, and returns its ID. The error is of kind Invalid if a
// parameter is invalid.
func (o Orders) Create(ctx context.Context, kind string, parameters fleet.Parameters) (id string, err error) {
	now := o.Clock.Now()

	parameters, err = completed(parameters, now)
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

// completed returns the parameters with their defaults. The error is of kind Invalid.
func completed(parameters fleet.Parameters, now time.Time) (fleet.Parameters, error) {
	parameters, err := parameters.Complete(now)
	if mistake, is := errors.AsType[*fleet.ValidationError](err); is {
		return parameters, failure.New(failure.Invalid, "%s", mistake)
	}

	return parameters, err //nolint:wrapcheck // Complete returns no other errors
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

// known converts the error about an orchestration that does not exist to one of kind NotFound.
func known(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return failure.New(failure.NotFound, "The orchestration does not exist.")
	}

	return err
}

// conduct accepts a new conductor for the orchestration.
func (o Orders) conduct(ctx context.Context, tx storage.Tx, id, why string) error {
	conductor, err := environment.NewConductor(id, o.Clock.Now())
	if err != nil {
		return err
	}

	conductor.Why, conductor.OrderedBy, conductor.Trace = why, audit.ActorOf(ctx).Name(), tracing.Traceparent(ctx)

	return o.Operations.Accept(ctx, tx, conductor)
}

// wake makes the conductor due, or accepts a new one if the conductor has ended.
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

// Cancel cancels an orchestration: no more upgrades start, and those in progress run to completion. A plan is canceled at once.
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

// Retried is the result of a retry.
type Retried struct {
	// Targets are the targets that are retried.
	Targets []environment.Target
	// Old contains the IDs of upgrades that were already retried. Invalid contains the IDs that do not belong to failed upgrades
	// of the orchestration.
	Old, Invalid []string
}

// maxRetried is the maximum number of IDs in a retry.
const maxRetried = 1000

// Retry makes failed targets pending again: the targets of the given upgrades, or all of them. Each target gets a new operation. If
// no target has failed, Retry continues an orchestration whose conductor has failed.
//
// The error is of kind NotFound if there is no such orchestration, Invalid if there are too many IDs, and Conflict if the
// orchestration is being canceled or is a plan that was not applied.
func (o Orders) Retry(ctx context.Context, id string, operationIDs []string) (retried Retried, err error) {
	if len(operationIDs) > maxRetried {
		return retried, failure.New(failure.Invalid,
			"The request has %d operation IDs. At most %d are allowed; without IDs, all failed operations are retried.",
			len(operationIDs), maxRetried)
	}

	err = o.change(ctx, func(tx storage.Tx) error {
		orchestration, err := o.Orchestrations.Lock(ctx, tx, id)
		if err != nil {
			return err
		}

		switch orchestration.State {
		case environment.OrchestrationCanceling:
			return failure.New(failure.Conflict, "The orchestration is being canceled. Retry when it has ended.")
		case environment.OrchestrationPlanned:
			return failure.New(failure.Conflict, "The plan has not been applied, so there is nothing to retry.")
		default:
		}

		if retried, err = o.retryTargets(ctx, tx, orchestration, operationIDs); err != nil {
			return err
		}

		if len(retried.Targets) == 0 {
			return o.restart(ctx, tx, orchestration)
		}

		why := "retried " + english.Plural(len(retried.Targets), "operation", "")

		if orchestration.State.Ended() {
			orchestration.State = environment.OrchestrationRetrying
		}

		if err := o.Orchestrations.SetState(ctx, tx, id, orchestration.State, orchestration.Description+"; "+why, o.Clock.Now()); err != nil {
			return err
		}

		if err := o.wake(ctx, tx, id, why); err != nil {
			return err
		}

		return o.record(ctx, tx, auditlog.Entry{
			Action: auditlog.ActionRetry, OperationID: id, After: auditlog.Fields{"operations": len(retried.Targets)},
		})
	})

	return retried, err
}

// restart accepts a new conductor if the former one has failed. That is the case if there is no conductor although the orchestration
// has not ended, or has failed without selecting targets or with unfinished ones. Otherwise, restart does nothing.
func (o Orders) restart(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration) error {
	stats, err := o.Orchestrations.Stats(ctx, tx, orchestration.ID)
	if err != nil {
		return err
	}

	state := orchestration.State

	switch {
	case !state.Ended():
	case state != environment.OrchestrationFailed:
		return nil
	case len(stats) == 0:
		state = environment.OrchestrationPending // the conductor failed before it selected the targets
	case unfinished(stats) > 0:
		state = environment.OrchestrationRetrying
	default:
		return nil
	}

	const why = "continued after a failure of the conductor"

	if conducted, err := o.Orchestrations.HasConductor(ctx, tx, orchestration.ID); err != nil || conducted {
		return err
	}

	if err := o.Orchestrations.SetState(ctx, tx, orchestration.ID, state, why, o.Clock.Now()); err != nil {
		return err
	}

	if err := o.conduct(ctx, tx, orchestration.ID, why); err != nil {
		return err
	}

	return o.record(ctx, tx, auditlog.Entry{Action: auditlog.ActionRetry, OperationID: orchestration.ID, After: auditlog.Fields{"state": state}})
}

// retryTargets makes the failed targets with the IDs pending, or all failed targets if there are no IDs. It sorts the other IDs into
// those that were already retried and invalid ones.
func (o Orders) retryTargets(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration, operationIDs []string) (Retried, error) {
	id := orchestration.ID

	// After the end of the orchestration, upgrades that did not start in time have failed like the others, and are retried only if
	// requested.
	if !orchestration.State.Ended() {
		if err := repeatUnstarted(ctx, tx, o.Orchestrations, orchestration); err != nil {
			return Retried{}, err
		}
	}

	if err := o.Orchestrations.Settle(ctx, tx, id); err != nil {
		return Retried{}, err
	}

	targets, err := o.Orchestrations.Failed(ctx, tx, id, operationIDs)
	if err != nil {
		return Retried{}, err
	}

	retried, found := Retried{Targets: targets}, map[string]bool{}

	for _, target := range targets {
		found[target.OperationID] = true

		if err := o.Orchestrations.Retry(ctx, tx, target, uuid.NewString(), o.Clock.Now()); err != nil {
			return Retried{}, err
		}
	}

	for _, operationID := range operationIDs {
		if found[operationID] {
			continue
		}

		found[operationID] = true

		old, err := o.Orchestrations.Repeated(ctx, tx, id, operationID)
		if err != nil {
			return Retried{}, err
		}

		if old {
			retried.Old = append(retried.Old, operationID)
		} else {
			retried.Invalid = append(retried.Invalid, operationID)
		}
	}

	return retried, nil
}
