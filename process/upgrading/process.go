package upgrading

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// limit is the maximum duration of an upgrade.
const limit = 3 * time.Hour

// Options are the dependencies that the processes upgradekyma and upgradecluster share.
type Options struct {
	Instances Instances
	Waiter    provisionerwait.Waiter
	// Maintenance is nil if AvS is turned off.
	Maintenance Maintenance
	// Notifications is nil if the notification service is turned off.
	Notifications Notifications
}

// Tasks are the steps in which the processes differ. Those that call other systems must be preemptible.
type Tasks struct {
	// Order contains the steps up to the one that orders the change.
	Order []process.Task[environment.Data]
	// Check contains the steps that wait until the change is complete.
	Check []process.Task[environment.Data]
	// Record is the last step, which stores the result.
	Record process.Task[environment.Data]
}

// Process returns the process of an upgrade. Its stages order the change, wait for it, end the AvS maintenance and record the
// result. If an operation failed in the check stage, its retry sends the order again.
func (o Options) Process(kind string, tasks Tasks) process.Process[environment.Data] {
	retry := process.DefaultRetry()

	return process.Process[environment.Data]{
		Kind:  kind,
		Limit: limit,
		Stages: []process.Stage[environment.Data]{
			{Name: "upgrade", Retry: retry, Steps: tasks.Order},
			{Name: "check", Retry: retry, RetryFrom: "upgrade", Steps: tasks.Check},
			{Name: "restore", Retry: retry, Steps: []process.Task[environment.Data]{
				o.monitoring(o.unlessEnding(endMaintenance(o.Maintenance), omitted), "Restores the states of the evaluations."),
			}},
			{Name: "record", Retry: retry, Steps: []process.Task[environment.Data]{tasks.Record}},
		},
	}
}

// Preemptible wraps the step with a check before each attempt. If the runtime is being removed, the step does nothing and marks
// the operation as preempted. The check is not a condition of the step, because a step that has failed before must still end.
func (o Options) Preemptible(step Step) Step { return o.unlessEnding(step, preempted) }

// unlessEnding wraps the step with a check before each attempt. If the runtime is being removed, ended returns the result instead of the
// step.
func (o Options) unlessEnding(step Step, ended func(Operation) Operation) Step {
	return process.StepFunc(step.Name(),
		func(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
			ending, err := o.ending(ctx, operation)

			switch {
			case err != nil:
				return operation, 0, err
			case ending:
				return ended(operation), 0, nil
			default:
				return step.Run(ctx, operation, log)
			}
		})
}

// ending reports whether the runtime is being removed.
func (o Options) ending(ctx context.Context, operation Operation) (bool, error) {
	if operation.Data.Upgrade.Preempted {
		return true, nil
	}

	return o.Instances.RuntimeEnding(ctx, operation.InstanceID)
}

// BeginMaintenance returns the step that suppresses alerts about the instance before the upgrade changes anything.
func (o Options) BeginMaintenance() process.Task[environment.Data] {
	return o.monitoring(o.Preemptible(beginMaintenance(o.Maintenance)), "Sets the evaluations to maintenance, which suppresses their alerts.")
}

// SendNotification returns the step that informs customers before the upgrade changes anything.
func (o Options) SendNotification() process.Task[environment.Data] {
	when := NoDryRun()
	when.Text += ", APP_NOTIFICATION_URL is set"
	when.Off = o.Notifications == nil

	return process.Task[environment.Data]{
		Step: o.Preemptible(sendNotification(o.Notifications)), When: when, Skippable: true,
		Notes: process.Notes{
			Does: "Informs customers of the beginning of the maintenance.", System: "notification service", Limit: notificationWindow, Optional: true,
		},
	}
}

// Check returns the task that waits until the Provisioner has made the change. does is the sentence of process.Notes.
func (o Options) Check(name, does string) process.Task[environment.Data] {
	return process.Task[environment.Data]{
		Step: o.Preemptible(process.StepFunc(name, o.Waiter.Await)), When: NoDryRun(),
		Notes: process.Notes{Does: does, System: "Provisioner", Limit: min(o.Waiter.Limit, limit)},
	}
}

// monitoring returns a task for a step that calls AvS. The task does not run if AvS is turned off. does is the sentence of
// process.Notes.
func (o Options) monitoring(step Step, does string) process.Task[environment.Data] {
	when := NoDryRun()
	when.Text += ", APP_AVS_API_ENDPOINT is set"
	when.Off = o.Maintenance == nil

	return process.Task[environment.Data]{
		Step: step, When: when, Skippable: true,
		Notes: process.Notes{Does: does, System: "AvS", Limit: maintenanceWindow, Optional: true},
	}
}
