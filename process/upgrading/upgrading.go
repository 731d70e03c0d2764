package upgrading

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// Operation is the input and the result of the steps.
type Operation = process.Operation[environment.Data]

// Step is a step of an upgrade. Its data is environment.Data.
type Step = process.Step[environment.Data]

// Instances reads instances and records upgrades.
type Instances interface {
	Find(ctx context.Context, id string) (environment.Instance, error)
	// RuntimeEnding reports whether the runtime of the instance is being removed or was removed.
	RuntimeEnding(ctx context.Context, instanceID string) (bool, error)
	// Update returns the effect that applies the change to the instance's row.
	Update(instance environment.Instance, change environment.Update) process.Effect
}

const textPreempted = "nothing to do: the runtime is being removed"

// NoDryRun returns the condition of steps that change the runtime or prepare the change: the operation is not a dry run.
func NoDryRun() process.Condition[environment.Data] {
	return process.Condition[environment.Data]{
		Text:  "not a dry run",
		Holds: func(operation Operation) bool { return operation.Data.Upgrade != nil && !operation.Data.Upgrade.DryRun },
	}
}

// preempted marks the operation as preempted. The timeline then says that the step had nothing to do.
func preempted(operation Operation) Operation {
	upgrade := *operation.Data.Upgrade
	upgrade.Preempted, operation.Data.Upgrade, operation.WaitingFor = true, &upgrade, ""

	return process.Noted(operation, textPreempted)
}

// omitted is the result of a step after the change that does nothing. It does not mark the operation as preempted, because the change must
// be recorded: an instance that is being suspended keeps it.
func omitted(operation Operation) Operation { return process.Noted(operation, textPreempted) }

// Start returns the first step, which reads the instance and builds the update. The step begins with an update that leaves the
// instance unchanged, and change adds the upgrade. If the instance is gone or has no runtime, the upgrade is preempted.
func Start(name, description string, instances Instances, change func(operation Operation, update *environment.Update) error) Step {
	return process.StepFunc(name,
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if operation.Data.Upgrade == nil {
				return operation, 0, failure.New(failure.Internal, "the operation contains no upgrade")
			}

			// NotAfter limits when the operation may start: an upgrade that has started runs to its end. An operator's retry after the
			// limit inherits the value, which then no longer applies.
			if end := operation.Data.Upgrade.NotAfter; operation.CreatedAt.Before(end) && !operation.StartedAt.Before(end) {
				return operation, 0, failure.New(failure.Permanent, "the upgrade did not start before %s, so it has changed nothing",
					end.UTC().Format(time.RFC3339)).
					WithReason(failure.ReasonNotStarted, failure.ComponentBroker)
			}

			instance, err := instances.Find(ctx, operation.InstanceID)
			if failure.Of(err).Reason == failure.ReasonNotFound {
				return preempted(operation), 0, nil
			}

			if err != nil {
				return operation, 0, err
			}

			ending, err := instances.RuntimeEnding(ctx, operation.InstanceID)
			if err != nil {
				return operation, 0, err
			}

			if ending || instance.RuntimeID == "" {
				return preempted(operation), 0, nil
			}

			update := environment.UnchangedUpdate(instance)
			if err := change(operation, &update); err != nil {
				return operation, 0, err
			}

			operation.Data.Instance, operation.Data.Update = instance, &update
			operation.Description = description

			return operation, 0, nil
		})
}

// Record returns the last step, which applies the upgrade to the instance's row. done describes a finished upgrade. A dry run
// only sets the description to the result of plan.
func Record(instances Instances, done, plan func(operation Operation) string) Step {
	return process.StepFunc("Record_Upgrade",
		func(_ context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			switch upgrade := operation.Data.Upgrade; {
			case upgrade.Preempted:
				operation.Description = environment.TextPreempted + "the runtime is being removed"
			case upgrade.DryRun:
				operation.Description = environment.TextDryRun + "nothing was changed: " + plan(operation)
			default:
				operation.Effect = instances.Update(operation.Data.Instance, *operation.Data.Update)
				operation.Description = done(operation)
			}

			return operation, 0, nil
		})
}
