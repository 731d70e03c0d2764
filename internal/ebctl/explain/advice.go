package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

const (
	// overdue is the delay after which a due operation indicates that no worker is free.
	overdue = time.Minute
	// tooLong exceeds the duration of any step, including the creation of a cluster.
	tooLong = time.Hour
)

// situation is the input of the rules.
type situation struct {
	operatorapi.Operation

	now time.Time
}

func (s situation) is(state process.State) bool { return process.State(s.State) == state }

func (s situation) failing() bool { return s.Problem.Message != "" }

// active reports whether the operation has started and not ended.
func (s situation) active() bool { return !process.State(s.State).Terminal() && !s.is(process.Pending) }

// stuck reports whether an error delays the operation, or its step takes too long.
func (s situation) stuck() bool {
	begin := since(s.Operation)

	return s.is(process.InProgress) && (s.failing() || !begin.IsZero() && s.now.Sub(begin) >= tooLong)
}

// retried reports whether another operation continues this one.
func (s situation) retried() bool {
	return slices.ContainsFunc(s.Timeline, func(entry operatorapi.TimelineEntry) bool {
		return process.Outcome(entry.Outcome) == process.Retried
	})
}

func (s situation) failed() bool { return s.is(process.Failed) && !s.retried() }

// from matches problems of the components.
func from(components ...string) func(situation) bool {
	return func(s situation) bool { return s.failing() && slices.Contains(components, s.Problem.Component) }
}

// failedAs matches failed operations of the kind that have not been retried.
func failedAs(kind string) func(situation) bool {
	return func(s situation) bool { return s.failed() && s.Kind == kind }
}

// rule is advice for the situations to which it applies. {instance}, {operation} and {step} are replaced.
type rule struct {
	applies func(situation) bool
	advice  string
}

// rules returns all advice in the order in which it is shown.
//
//nolint:funlen // a table
func rules() []rule {
	return []rule{
		{
			func(s situation) bool { return s.is(process.Pending) || s.is(process.Canceled) },
			"List the operations of the instance: ebctl operation list --instance {instance}",
		},
		{
			func(s situation) bool { return s.active() && s.failing() },
			"The broker retries on its own. Follow the operation: ebctl operation get {operation} --wait",
		},
		{
			func(s situation) bool { return s.active() && !s.failing() },
			"No action is needed. Follow the operation: ebctl operation get {operation} --wait",
		},
		{
			from(failure.ComponentProvisioner),
			"If this persists, check that the Provisioner runs and that the broker can reach it (APP_PROVISIONER_URL).",
		},
		{
			from(failure.ComponentGardener, failure.ComponentGardenerClient),
			"Check the Shoot in Gardener: its conditions and last errors name credentials, quotas and regions.",
		},
		{
			from(failure.ComponentRuntime),
			"Check the runtime: ebctl instance kubeconfig {instance}",
		},
		{
			func(s situation) bool { return s.failing() && s.Problem.Reason == failure.ReasonInternal },
			"The broker's log has the cause, in the lines with operation {operation}.",
		},
		{
			func(s situation) bool { return s.active() && due(s.Operation, s.now.Add(-overdue)) },
			"The operation is overdue. Check that the broker runs and has free workers (APP_WORKERS).",
		},
		{
			func(s situation) bool { return s.is(process.Succeeded) && len(s.SkippedSteps) > 0 },
			"Steps were skipped; the timeline shows why. Do their work by hand.",
		},
		{
			func(s situation) bool { return s.stuck() && s.Skippable },
			"To continue without the step: ebctl operation skip {operation} --step {step} --reason REASON",
		},
		{
			func(s situation) bool { return s.stuck() || s.is(process.Pending) },
			"To cancel the operation: ebctl operation cancel {operation} --reason REASON",
		},
		{
			situation.retried,
			"The operation was retried. The last entry of the timeline names the new operation.",
		},
		{
			situation.failed,
			"After removing the cause, continue where it failed: ebctl operation retry {operation} --reason REASON",
		},
		{
			func(s situation) bool { return s.failed() && s.Skippable },
			"Or continue without the failed step: ebctl operation retry {operation} --skip {step} --reason REASON",
		},
		{
			func(s situation) bool { return s.is(process.Canceled) && !s.retried() },
			"To continue it, unless the instance has a later operation: ebctl operation retry {operation} --reason REASON",
		},
		{
			failedAs(environment.KindProvision),
			"Or delete the instance and create it again: ebctl instance delete {instance}",
		},
		{
			failedAs(environment.KindDeprovision),
			"Or delete the instance again: ebctl instance delete {instance}",
		},
		{
			failedAs(environment.KindUpdate),
			"The instance keeps its former parameters. Or send another update: ebctl instance update {instance} --parameters JSON",
		},
		{
			failedAs(environment.KindSuspend),
			"Or suspend the instance again; until then, it cannot be updated or resumed: ebctl instance suspend {instance}",
		},
		{
			failedAs(environment.KindResume),
			"Or resume the instance again, or suspend it: ebctl instance resume {instance}, ebctl instance suspend {instance}",
		},
	}
}

// advice returns the advice of all rules that apply.
func advice(operation operatorapi.Operation, now time.Time) []string {
	var given []string

	ids := strings.NewReplacer("{instance}", operation.InstanceID, "{operation}", operation.ID, "{step}", operation.Step)

	for _, rule := range rules() {
		if rule.applies(situation{Operation: operation, now: now}) {
			given = append(given, ids.Replace(rule.advice))
		}
	}

	return given
}
