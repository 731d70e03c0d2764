package deprovisioning

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// notCompleted returns the steps that were skipped or abandoned and may have left something behind.
func notCompleted(operation Operation) []string {
	var steps []string

	for _, step := range operation.SkippedSteps {
		if !slices.Contains(leavingNothing(), step) && (!ofRuntime(step) || operation.Data.Instance.RuntimeID != "" || operation.Data.Ordered) {
			steps = append(steps, step)
		}
	}

	return steps
}

// leavingNothing returns the steps that a cleanup need not repeat. The sweep of the account pool completes the release of the
// account, because it knows whether a new instance uses the account. cleanBTP needs the runtime, which no longer exists.
func leavingNothing() []string {
	return []string{
		stepRelease,
		cleanBTP{}.Name(),
	}
}

// runtimeNotRemoved returns the steps of a suspension that may have left the runtime behind. The deletion of the instance repeats
// all other steps.
func runtimeNotRemoved(operation Operation) []string {
	return slices.DeleteFunc(notCompleted(operation), func(step string) bool { return !ofRuntime(step) })
}

// RemovesRuntime reports whether one of the steps removes the runtime or waits for its removal. If such a step of a leftover was not
// completed, the runtime may still exist.
func RemovesRuntime(steps []string) bool { return slices.ContainsFunc(steps, ofRuntime) }

// ofRuntime reports whether the step removes the runtime or waits for its removal.
func ofRuntime(step string) bool { return step == stepRemoveRuntime || step == stepCheckRemoval }

// StepsFor returns the names of the steps that remove the given objects.
func StepsFor(objects []environment.OutsideObject) []string {
	bySystem := map[string]string{
		environment.SystemAvS: removeEvaluations{}.Name(),
		environment.SystemEDP: deregisterEDP{}.Name(),
		environment.SystemIAS: deregisterIAS{}.Name(),

		environment.SystemReconciler: stepDeregister,
	}
	ofControlPlane := map[string]string{
		environment.KindKymaResource: deleteKyma{}.Name(),
		environment.KindKubeconfig:   deleteKubeconfig{}.Name(),
	}

	var steps []string

	for _, object := range objects {
		step, known := bySystem[object.System]
		if object.System == environment.SystemLifecycleManager {
			step, known = ofControlPlane[object.Kind]
		}

		if known && !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}

	return steps
}

// FinishedStages returns the stages that a cleanup skips because they contain none of the given steps. A step that waits for the
// result of a request runs together with the step that sends the request.
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

// removeLeftover is the last step of a cleanup. It removes the leftover, or records which steps are still not completed. If an
// instance uses the runtime, nothing is left of it, and the leftover is removed, too.
func removeLeftover(instances Instances) Step {
	return process.StepFunc("Remove_Instance", func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
		user, err := instances.RuntimeUser(ctx, operation.Data.Instance)
		if err != nil && !failure.Is(err, failure.Waiting) {
			return operation, 0, err
		}

		if user != "" {
			operation.Effect = instances.Reused(operation.Record, user)
			operation.Description = "Nothing was removed: instance " + user + " uses the runtime"

			return operation, 0, nil
		}

		left := notCompleted(operation)

		operation.Effect, operation.Description = instances.Cleaned(operation.Record, left), "Leftovers were removed"
		if len(left) > 0 {
			operation.Description = "Some steps were not completed: " + strings.Join(left, ", ")
		}

		return operation, 0, nil
	})
}
