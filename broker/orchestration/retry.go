package orchestration

import (
	"context"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// Retried is the result of a retry.
type Retried struct {
	// Targets are the targets that are retried.
	Targets []environment.Target
	// Old contains the IDs of upgrades that were already retried, or that a later upgrade of the instance has superseded. Invalid
	// contains the IDs that do not belong to failed upgrades of the orchestration.
	Old, Invalid []string
}

// maxRetried is the maximum number of IDs in a retry.
const maxRetried = 1000

// Retry is a request to retry failed upgrades.
type Retry struct {
	// OperationIDs are the upgrades to retry, at most maxRetried. If it is empty, all failed upgrades are retried.
	OperationIDs []string
	// Immediate makes upgrades start immediately, even outside the maintenance windows of their instances.
	Immediate bool
}

// Retry makes failed targets pending again. Each target gets a new operation. An upgrade is not repeated if the instance has a later
// upgrade of the same kind, because the repetition could undo it. If the orchestration has ended, the failure gate then counts only new
// failures. If no target is retried, Retry continues an orchestration whose conductor has failed.
//
// The error is of kind NotFound if there is no such orchestration, Invalid if there are too many IDs, and Conflict if the orchestration
// is being canceled, is a plan that was not applied, was canceled with all its upgrades, or has a deadline that has passed.
func (o Orders) Retry(ctx context.Context, id string, retry Retry) (retried Retried, err error) {
	if count := len(retry.OperationIDs); count > maxRetried {
		return retried, failure.New(failure.Invalid,
			"The request has %d operation IDs, but the limit is %d. Without IDs, all failed operations are retried.", count, maxRetried)
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
		case environment.OrchestrationExpired:
			return failure.New(failure.Conflict, "The plan has expired: it was not applied in time, so there is nothing to retry. Make a new one.")
		default:
		}

		if retried, err = o.retryTargets(ctx, tx, orchestration, retry); err != nil {
			return err
		}

		if len(retried.Targets) == 0 {
			if err := o.checkCanceled(ctx, tx, orchestration, retried); err != nil {
				return err
			}

			return o.restart(ctx, tx, orchestration)
		}

		if deadline := orchestration.Parameters.Strategy.Deadline; !deadline.IsZero() && !o.Clock.Now().Before(deadline) {
			return failure.New(failure.Conflict, "The deadline of the orchestration, %s, has passed, so no upgrade can start. Order a new orchestration.",
				deadline.UTC().Format(time.RFC3339))
		}

		why := "retried " + english.Plural(len(retried.Targets), "operation", "")

		if err := o.continueWith(ctx, tx, orchestration, why); err != nil {
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

// checkCanceled rejects the retry of an orchestration or a plan that was canceled with all its upgrades. A response without targets
// would look like a success.
func (o Orders) checkCanceled(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration, retried Retried) error {
	if orchestration.State != environment.OrchestrationCanceled || len(retried.Old) > 0 {
		return nil
	}

	stats, err := o.Orchestrations.Stats(ctx, tx, orchestration.ID)
	if err != nil {
		return err
	}

	for state := range stats {
		if state != string(environment.TargetCanceled) && state != string(environment.TargetLeftOut) {
			return nil
		}
	}

	return failure.New(failure.Conflict, "The orchestration was canceled, and none of its upgrades has failed, so there is nothing to retry. Order a new one.")
}

// Retryable reports whether Retry can have an effect on an orchestration: it has failed targets, or its conductor has failed. stats
// contains the number of targets in each state.
func Retryable(state environment.OrchestrationState, stats map[string]int) bool {
	switch {
	case state == environment.OrchestrationCanceling:
		return false
	case state == environment.OrchestrationFailed && (len(stats) == 0 || unfinished(stats) > 0):
		return true
	default:
		return stats[string(environment.TargetFailed)] > 0
	}
}

// continueWith stores that targets are retried. If the orchestration has ended, it accepts the failures that are not retried: they could
// otherwise close the failure gate before the retry starts.
func (o Orders) continueWith(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration, why string) error {
	if orchestration.State.Ended() {
		orchestration.State = environment.OrchestrationRetrying

		if err := o.Orchestrations.AcceptFailures(ctx, tx, orchestration.ID); err != nil {
			return err
		}
	}

	return o.Orchestrations.SetState(ctx, tx, orchestration.ID, orchestration.State, orchestration.Description+"; "+why, o.Clock.Now())
}

// restart accepts a new conductor if the previous one has failed, and otherwise does nothing. The conductor has failed if the
// orchestration has not ended but has no conductor, or if the orchestration failed before it selected its targets or while
// targets were unfinished.
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

// retryTargets makes the failed targets with the requested operation IDs pending, or all failed targets if no IDs are requested.
// It classifies the remaining IDs as old or invalid.
func (o Orders) retryTargets(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration, retry Retry) (Retried, error) {
	id := orchestration.ID

	// If the orchestration has not ended, upgrades that did not start in time become pending again without a request. After its
	// end, they count as failed, and are retried only if the request includes them.
	if !orchestration.State.Ended() {
		if err := repeatUnstarted(ctx, tx, o.Orchestrations, orchestration); err != nil {
			return Retried{}, err
		}
	}

	if err := o.Orchestrations.Settle(ctx, tx, id); err != nil {
		return Retried{}, err
	}

	failed, err := o.Orchestrations.Failed(ctx, tx, id, retry.OperationIDs)
	if err != nil {
		return Retried{}, err
	}

	superseded, err := o.superseded(ctx, tx, orchestration)
	if err != nil {
		return Retried{}, err
	}

	retried, known, next := Retried{}, map[string]bool{}, map[string]string{}

	for _, target := range failed {
		known[target.OperationID] = true

		if superseded[target.OperationID] {
			retried.Old = append(retried.Old, target.OperationID)
		} else {
			retried.Targets, next[target.InstanceID] = append(retried.Targets, target), uuid.NewString()
		}
	}

	repeated, err := o.Orchestrations.Repeated(ctx, tx, id, retry.OperationIDs)
	if err != nil {
		return Retried{}, err
	}

	for _, operationID := range retry.OperationIDs {
		switch {
		case known[operationID]:
		case slices.Contains(repeated, operationID):
			retried.Old = append(retried.Old, operationID)
		default:
			retried.Invalid = append(retried.Invalid, operationID)
		}

		known[operationID] = true
	}

	return retried, o.Orchestrations.Retry(ctx, tx, id, next, retry.Immediate, o.Clock.Now())
}

// superseded returns the failed upgrades of an orchestration that were followed by another upgrade of the instance, unless the
// later upgrade was canceled or changed nothing.
func (o Orders) superseded(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration) (map[string]bool, error) {
	superseded := map[string]bool{}

	if orchestration.Parameters.DryRun { // its upgrades change nothing, so they can always be repeated
		return superseded, nil
	}

	newer, err := o.Orchestrations.Newer(ctx, tx, orchestration.ID)
	if err != nil {
		return nil, err
	}

	for _, each := range newer {
		if superseded[each.FailedID] {
			continue
		}

		if superseded[each.FailedID], err = o.Planner.Upgrader.MayHaveChanged(ctx, tx, each.OperationID); err != nil {
			return nil, err
		}
	}

	return superseded, nil
}
