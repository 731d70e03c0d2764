package orchestration

import (
	"context"
	"fmt"
	"slices"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

const textFailedUpgrade = "The upgrade has failed, so it may not have reached the Provisioner. Retry it, or upgrade the instance to another version."

// Undo accepts an orchestration that rolls back the upgrades of another one, and returns its ID. The rollback starts immediately,
// with the limits of the other orchestration. Targets that cannot be rolled back are left out. While the rollback runs, a repeated
// call returns the same ID. If plan is set, Undo stores a plan instead, and nothing starts.
//
// The error is of kind NotFound if there is no such orchestration, and Conflict if the orchestration has not ended or cannot be
// undone, or if none of its upgrades can be rolled back and plan is not set.
func (o Orders) Undo(ctx context.Context, id string, plan bool) (undoID string, err error) {
	undone, err := o.Orchestrations.Get(ctx, o.DB.Reader(), id)
	if err != nil {
		return "", known(err)
	}

	if err := checkUndo(undone); err != nil {
		return "", err
	}

	if err := o.settle(ctx, id); err != nil {
		return "", err
	}

	undo, err := o.newUndo(ctx, undone)
	if err != nil {
		return "", err
	}

	targets, err := o.Planner.targets(ctx, undo)
	if err != nil {
		return "", err
	}

	err = o.change(ctx, func(tx storage.Tx) error {
		// The lock makes concurrent calls run one after another.
		if _, err := o.Orchestrations.Lock(ctx, tx, id); err != nil {
			return err
		}

		running, err := o.Orchestrations.UnfinishedUndo(ctx, tx, id)
		if err != nil || running != "" {
			undo.ID = running

			return err
		}

		if why := nothingToUndo(targets); why != "" && !plan {
			return failure.New(failure.Conflict, "%s", why)
		}

		return o.acceptUndo(ctx, tx, undo, targets, plan)
	})

	return undo.ID, err
}

// settle records the results of upgrades that ended after the conductor of their orchestration had failed.
func (o Orders) settle(ctx context.Context, id string) error {
	return o.DB.InTx(ctx, func(tx storage.Tx) error {
		if _, err := o.Orchestrations.Lock(ctx, tx, id); err != nil {
			return err
		}

		return o.Orchestrations.Settle(ctx, tx, id)
	})
}

// nothingToUndo returns an error message if no target can be rolled back. The message quotes the reason for the first target. If at
// least one target can be rolled back, the result is empty.
func nothingToUndo(targets []environment.Target) string {
	if len(targets) == 0 {
		return "None of the instances that the orchestration upgraded still exist."
	}

	if slices.ContainsFunc(targets, func(target environment.Target) bool { return target.State == environment.TargetPending }) {
		return ""
	}

	return fmt.Sprintf("None of the %d instances can be rolled back. The reason for instance %s: %s A dry run lists all reasons.",
		len(targets), targets[0].InstanceID, targets[0].Description)
}

// checkUndo returns an error of kind Conflict if the orchestration cannot be undone. It does not check the targets.
func checkUndo(undone environment.Orchestration) error {
	switch {
	case undone.Kind != environment.KindUpgradeKyma:
		return failure.New(failure.Conflict,
			"The orchestration upgraded clusters. These upgrades cannot be rolled back, because Kubernetes versions cannot be lowered.")
	case undone.Undoes != "":
		return failure.New(failure.Conflict, "The orchestration is itself an undo. Order the upgrade again instead.")
	case undone.Parameters.DryRun:
		return failure.New(failure.Conflict, "The orchestration was a dry run and has changed nothing.")
	case undone.State == environment.OrchestrationPlanned, undone.State == environment.OrchestrationExpired:
		return failure.New(failure.Conflict, "The plan was not applied, so there is nothing to undo.")
	case !undone.State.Ended():
		return failure.New(failure.Conflict, "The orchestration is %s. Cancel it or wait for its end, and then undo it.", undone.State)
	default:
		return nil
	}
}

// newUndo returns an orchestration that rolls back the upgrades of another one. It copies the targets and the limits, but not the
// waves, the maintenance windows or the failure gate.
func (o Orders) newUndo(ctx context.Context, undone environment.Orchestration) (environment.Orchestration, error) {
	now := o.Clock.Now()

	parameters, err := completed(undone.Kind, fleet.Parameters{
		Targets: undone.Parameters.Targets, Strategy: fleet.Strategy{Parallel: undone.Parameters.Strategy.Parallel},
	}, now)

	undo := newOrchestration(ctx, undone.Kind, parameters, now)
	undo.Undoes = undone.ID

	return undo, err
}

// acceptUndo stores the undo with its targets. Unless plan is true, it also accepts the operation that conducts the undo.
func (o Orders) acceptUndo(ctx context.Context, tx storage.Tx, undo environment.Orchestration, targets []environment.Target, plan bool) error {
	entry := auditlog.Entry{Action: auditlog.ActionOrchestrate, OperationID: undo.ID, After: auditlog.Fields{"kind": undo.Kind, "undoes": undo.Undoes}}

	if undo.State, undo.Description = environment.OrchestrationInProgress, "Undoes "+undo.Undoes+": "+describeTargets(targets); plan {
		undo.State, undo.Description, entry.Action = environment.OrchestrationPlanned, "Planned "+describeTargets(targets), auditlog.ActionPlan
	}

	if err := o.Orchestrations.Insert(ctx, tx, undo); err != nil {
		return err
	}

	if err := o.Orchestrations.AddTargets(ctx, tx, targets); err != nil {
		return err
	}

	if !plan {
		if err := o.conduct(ctx, tx, undo.ID, "undoes orchestration "+undo.Undoes); err != nil {
			return err
		}
	}

	return o.record(ctx, tx, entry)
}

// undone returns the upgrades that an undo rolls back, keyed by instance ID. It returns nil for other orchestrations.
func (p Planner) undone(ctx context.Context, orchestration environment.Orchestration) (map[string]environment.Target, error) {
	if orchestration.Undoes == "" {
		return nil, nil //nolint:nilnil // nothing is undone
	}

	upgraded, err := p.Upgraded(ctx, p.reader(), orchestration.Undoes)
	if err != nil {
		return nil, err
	}

	targets := make(map[string]environment.Target, len(upgraded))
	for _, target := range upgraded {
		targets[target.InstanceID] = target
	}

	return targets, nil
}

// addRollback sets the versions before and after the rollback on the target, or leaves the target out if its upgrade cannot be
// rolled back.
func (p Planner) addRollback(ctx context.Context, target *environment.Target, instance environment.Instance, upgraded environment.Target) error {
	if upgraded.State == environment.TargetFailed {
		target.State, target.Description = environment.TargetLeftOut, textFailedUpgrade

		return nil
	}

	past, err := p.Upgrader.Operations.OfInstance(ctx, p.reader(), target.InstanceID)
	if err != nil {
		return err
	}

	versions, err := p.Upgrader.PreviewRollback(ctx, p.reader(), instance, past, upgraded.OperationID)

	switch {
	case isUnreadable(err):
		target.State, target.Description = environment.TargetLeftOut, textUnreadable
	case failure.Is(err, failure.Invalid):
		target.State, target.Description = environment.TargetLeftOut, failure.Of(err).Text
	case err != nil:
		return fmt.Errorf("planning the rollback of instance %s: %w", instance.ID, err)
	default:
		target.FromVersion, target.ToVersion = versions.From, versions.To
	}

	return nil
}

// rollsBack returns the ID of the upgrade that the operation of a target rolls back, or an empty string if the orchestration is
// not an undo.
func (c Conductor) rollsBack(ctx context.Context, tx storage.Tx, orchestration environment.Orchestration, target environment.Target) (string, error) {
	if orchestration.Undoes == "" {
		return "", nil
	}

	return c.Orchestrations.UpgradeOf(ctx, tx, orchestration.Undoes, target.InstanceID)
}
