package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/ebctl/output"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
)

// summary is what happens to the operation, in a sentence.
func summary(operation operatorapi.Operation, now time.Time) string {
	return fmt.Sprintf("The %s of instance %s %s.", operation.Kind, operation.InstanceID, predicate(operation, now))
}

func predicate(operation operatorapi.Operation, now time.Time) string {
	var took string
	if operation.FinishedAt != nil {
		took = " after " + output.Duration(operation.FinishedAt.Sub(operation.CreatedAt))
	}

	switch process.State(operation.State) {
	case process.Pending:
		return "waits for its turn"
	case process.Canceling:
		return "is being canceled and ends before its next step"
	case process.Succeeded:
		return "succeeded" + took
	case process.Failed:
		return "failed" + took
	case process.Canceled:
		return "was canceled" + took
	case process.InProgress:
	}

	switch {
	case operation.Replica != "":
		return "is running"
	case operation.Problem != nil:
		return "is held up by an error and tries again"
	case due(operation, now):
		return "is due and waits for a free worker"
	default:
		return "waits"
	}
}

// due reports whether the operation could run but nobody carries it.
func due(operation operatorapi.Operation, now time.Time) bool {
	return operation.Replica == "" && operation.NextRun != nil && !operation.NextRun.After(now)
}

// long is after how much time nobody should go on waiting without looking.
const long = time.Minute

// situation is what advice depends on.
type situation struct {
	operatorapi.Operation

	now time.Time
}

func (s situation) is(state process.State) bool { return process.State(s.State) == state }

func (s situation) going() bool { return !process.State(s.State).Terminal() && !s.is(process.Pending) }

// from reports whether the problem came from one of the components.
func (s situation) from(components ...string) bool {
	for _, component := range components {
		if s.Problem != nil && s.Problem.Component == component {
			return true
		}
	}

	return false
}

// rule is advice for a situation. {instance} and {operation} stand for the ids, {step} for the
// step.
type rule struct {
	applies func(situation) bool
	advice  string
}

// rules are tried in order; all that apply are given.
func rules() []rule {
	return []rule{
		{
			applies: func(s situation) bool { return s.is(process.Pending) || s.is(process.Canceled) },
			advice:  "See what else is done to the instance: ebctl operation list --instance {instance}",
		},
		{
			applies: func(s situation) bool { return s.going() && s.Problem != nil },
			advice:  "Nothing is lost: it tries again by itself. Watch it: ebctl operation get {operation} --wait",
		},
		{
			applies: func(s situation) bool { return s.going() && s.Problem == nil },
			advice:  "Nothing needs to be done. Watch it: ebctl operation get {operation} --wait",
		},
		{
			applies: func(s situation) bool { return s.from(failure.ComponentProvisioner) },
			advice:  "If this lasts, check that the Provisioner runs and that the broker reaches it (APP_PROVISIONER_URL).",
		},
		{
			applies: func(s situation) bool { return s.from(failure.ComponentGardener, failure.ComponentGardenerClient) },
			advice:  "Look at the cluster in Gardener: its conditions and last errors name credentials, quotas and regions.",
		},
		{
			applies: func(s situation) bool { return s.from(failure.ComponentRuntime) },
			advice:  "Look into the runtime: ebctl instance kubeconfig {instance}",
		},
		{
			applies: func(s situation) bool {
				return s.Problem != nil && s.Problem.Reason == failure.ReasonInternal
			},
			advice: "The cause stands in the log of the broker, in the lines with operation {operation}.",
		},
		{
			applies: func(s situation) bool { return s.going() && due(s.Operation, s.now.Add(-long)) },
			advice:  "It is overdue and nobody carries it: check that the broker runs and has workers to spare (APP_WORKERS).",
		},
		{
			applies: func(s situation) bool { return s.is(process.Succeeded) && len(s.SkippedSteps) > 0 },
			advice:  "Steps were skipped; the timeline tells why. Their work has to be done by hand.",
		},
	}
}

func advice(operation operatorapi.Operation, now time.Time) []string {
	var given []string

	ids := strings.NewReplacer("{instance}", operation.InstanceID, "{operation}", operation.ID, "{step}", operation.Step)

	for _, rule := range append(rules(), interventions()...) {
		if rule.applies(situation{Operation: operation, now: now}) {
			given = append(given, ids.Replace(rule.advice))
		}
	}

	return given
}
