package orchestrating

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

const (
	// limit is the maximum duration of an orchestration. It must exceed the longest schedule.
	limit = 365 * 24 * time.Hour
	// longestPause is the longest time between two runs of the conductor. The conductor is due earlier if an upgrade that has
	// started ends, or if an operator makes a change.
	longestPause = time.Minute
	// shortestPause prevents runs in quick succession.
	shortestPause = 10 * time.Millisecond
)

// Operation is the input and the result of the steps.
type Operation = process.Operation[environment.Data]

// Step is a step of the process. Its data is environment.Data.
type Step = process.Step[environment.Data]

// Progress is the state of an orchestration after a run of its conductor.
type Progress struct {
	// Text describes the state to operators.
	Text string
	// Done reports that no target is pending or in progress.
	Done bool
	// Next is when the next pending target is due, or zero.
	Next time.Time
}

// Orchestrations reads and writes orchestrations. All methods are idempotent, and fail if the conductor has lost its lease.
// Errors carry a failure.Kind.
type Orchestrations interface {
	// Plan selects the targets, unless they have been selected before.
	Plan(ctx context.Context, by process.Record) error
	// Advance records the results of upgrades, and starts due upgrades up to the allowed number.
	Advance(ctx context.Context, by process.Record) (Progress, error)
	// End returns the effect that ends the orchestration. The effect fails with a transient error if targets have become pending
	// again.
	End(by process.Record) process.Effect
}

// Options are the dependencies of the process.
type Options struct{ Orchestrations Orchestrations }

// Process returns the process that runs an orchestration.
func Process(options Options) process.Process[environment.Data] {
	retry := process.DefaultRetry()
	retry.Window = limit // an outage of the database must not end an orchestration

	return process.Process[environment.Data]{
		Kind:  environment.KindOrchestrate,
		Limit: limit,
		Stages: []process.Stage[environment.Data]{
			{Name: "plan", Retry: retry, Steps: []process.Task[environment.Data]{{
				Step: planTargets(options.Orchestrations), Notes: process.Notes{Does: "Selects the instances to upgrade."},
			}}},
			{Name: "run", Retry: retry, Steps: []process.Task[environment.Data]{{
				Step: runTargets(options.Orchestrations), Notes: process.Notes{Does: "Starts the upgrades, and waits until all have ended."},
			}}},
		},
	}
}

// planTargets returns the step that selects the targets.
func planTargets(orchestrations Orchestrations) Step {
	return process.Action("Plan_Targets", "Targets planned", func(ctx context.Context, operation Operation) error {
		return orchestrations.Plan(ctx, operation.Record)
	})
}

// runTargets returns the step that starts upgrades and waits for them. It is the last step, because targets can become pending
// again until the orchestration ends.
func runTargets(orchestrations Orchestrations) Step {
	return process.StepFunc("Run_Targets", func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
		progress, err := orchestrations.Advance(ctx, operation.Record)
		if err != nil {
			return operation, 0, err
		}

		operation.Description = progress.Text

		if progress.Done {
			operation.Effect = orchestrations.End(operation.Record)

			return operation, 0, nil
		}

		pause := longestPause
		if !progress.Next.IsZero() {
			pause = min(pause, max(progress.Next.Sub(operation.Now()), shortestPause))
		}

		return process.Await(operation, progress.Text, pause, limit)
	})
}
