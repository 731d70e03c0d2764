package deprovisioning

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// notCompleted returns the steps that the operation has skipped or given up and that may have left something. It omits the release
// of the account: the sweep of the account pool completes it, and knows whether a new instance uses the account. It also omits the
// cleanup of the BTP service operator, which needs the runtime that the operation has removed.
func notCompleted(operation Operation) []string {
	var steps []string

	for _, step := range operation.SkippedSteps {
		if step != stepRelease && step != (cleanBTP{}).Name() && (!ofRuntime(step) || operation.Data.Instance.RuntimeID != "" || operation.Data.Ordered) {
			steps = append(steps, step)
		}
	}

	return steps
}

// runtimeNotRemoved returns the steps of a suspension that may have left the runtime. The deletion of the instance repeats the other
// steps.
func runtimeNotRemoved(operation Operation) []string {
	return slices.DeleteFunc(notCompleted(operation), func(step string) bool { return !ofRuntime(step) })
}

// ofRuntime reports whether the step removes the runtime.
func ofRuntime(step string) bool { return step == stepRemoveRuntime || step == stepCheckRemoval }

// StepsFor returns the names of the steps that remove the objects.
func StepsFor(objects []environment.OutsideObject) []string {
	bySystem := map[string]string{
		environment.SystemAvS: removeEvaluations{}.Name(),
		environment.SystemEDP: deregisterEDP{}.Name(),
		environment.SystemIAS: deregisterIAS{}.Name(),
	}

	var steps []string

	for _, object := range objects {
		if step, known := bySystem[object.System]; known && !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}

	return steps
}

// FinishedStages returns the stages that a cleanup of the steps does not run. A step that waits for the result of a request runs with
// the step that sends the request.
func FinishedStages(cleanup process.Process[environment.Data], steps []string) []string {
	run := map[string]bool{cleanup.Stages[len(cleanup.Stages)-1].Name: true}

	for _, stage := range cleanup.Stages {
		if slices.ContainsFunc(stage.Steps, func(task process.Task[environment.Data]) bool { return slices.Contains(steps, task.Step.Name()) }) {
			run[stage.Name] = true
			if stage.RetryFrom != "" {
				run[stage.RetryFrom] = true
			}
		}
	}

	var finished []string

	for _, stage := range cleanup.Stages {
		if !run[stage.Name] && !run[stage.RetryFrom] {
			finished = append(finished, stage.Name)
		}
	}

	return finished
}

// removeLeftover ends a cleanup.
func removeLeftover(instances Instances) Step {
	return process.StepFunc("Remove_Instance", func(_ context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
		left := notCompleted(operation)

		operation.Effect, operation.Description = instances.Cleaned(operation.Record, left), "Leftovers are removed"
		if len(left) > 0 {
			operation.Description = "Some steps were not completed: " + strings.Join(left, ", ")
		}

		return operation, 0, nil
	})
}
