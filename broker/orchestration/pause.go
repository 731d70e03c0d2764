package orchestration

import (
	"cmp"
	"context"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// Pause pauses an orchestration, which then starts no upgrades until Resume. Upgrades in progress run to completion. Pause does
// nothing if the orchestration is paused or gated. The error is of kind NotFound if there is no such orchestration, and Conflict
// if the orchestration has not begun, is being canceled or has ended.
func (o Orders) Pause(ctx context.Context, id string) error {
	return o.change(ctx, func(tx storage.Tx) error {
		orchestration, err := o.Orchestrations.Lock(ctx, tx, id)
		if err != nil || orchestration.State.Stopped() {
			return err
		}

		switch orchestration.State {
		case environment.OrchestrationInProgress, environment.OrchestrationRetrying:
		case environment.OrchestrationPending:
			return failure.New(failure.Conflict, "The orchestration is being planned. Try again in a moment.")
		default:
			return failure.New(failure.Conflict, "The orchestration is %s. Only a running orchestration can be paused.", orchestration.State)
		}

		by := cmp.Or(audit.ActorOf(ctx).Name(), "an unauthenticated user")

		return o.transit(ctx, tx, orchestration, environment.OrchestrationPaused, "Paused by "+by, auditlog.ActionPause)
	})
}

// Resume continues an orchestration that is paused or gated. If it was gated, the failure gate then counts only new failures. Resume
// does nothing if the orchestration is running or has not begun. The error is of kind NotFound if there is no such orchestration, and
// Conflict if it is a plan, is being canceled or has ended.
func (o Orders) Resume(ctx context.Context, id string) error {
	return o.change(ctx, func(tx storage.Tx) error {
		orchestration, err := o.Orchestrations.Lock(ctx, tx, id)
		if err != nil {
			return err
		}

		switch orchestration.State {
		case environment.OrchestrationPaused:
		case environment.OrchestrationGated:
			if err := repeatUnstarted(ctx, tx, o.Orchestrations, orchestration); err != nil {
				return err
			}

			if err := o.Orchestrations.Settle(ctx, tx, id); err != nil {
				return err
			}

			if err := o.Orchestrations.AcceptFailures(ctx, tx, id); err != nil {
				return err
			}
		case environment.OrchestrationInProgress, environment.OrchestrationRetrying, environment.OrchestrationPending:
			return nil
		default:
			return failure.New(failure.Conflict, "The orchestration is %s. Only one that is paused or gated can be resumed.", orchestration.State)
		}

		return o.transit(ctx, tx, orchestration, environment.OrchestrationInProgress, "Resumed", auditlog.ActionResume)
	})
}

// transit changes the state of the orchestration, makes an unfinished conductor due, and records the change.
func (o Orders) transit(ctx context.Context, tx storage.Tx, from environment.Orchestration, to environment.OrchestrationState,
	description, action string,
) error {
	if err := o.Orchestrations.SetState(ctx, tx, from.ID, to, description, o.Clock.Now()); err != nil {
		return err
	}

	// WakeConductor does nothing if the conductor has failed. Only a retry continues such an orchestration.
	if _, err := o.Orchestrations.WakeConductor(ctx, tx, from.ID, o.Clock.Now()); err != nil {
		return err
	}

	return o.record(ctx, tx, auditlog.Entry{
		Action: action, OperationID: from.ID, Before: auditlog.Fields{"state": from.State}, After: auditlog.Fields{"state": to},
	})
}
