package explain_test

import (
	"testing"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
)

func TestCause(t *testing.T) {
	t.Parallel()

	rejected := operatorapi.Problem{Message: "AvS rejects the credentials", Component: "avs"}
	cases := map[string]struct {
		reason string
		change func(*operatorapi.Operation)
		want   string
	}{
		"Responds": {
			"an available system is no cause, its response is",
			func(o *operatorapi.Operation) {
				o.Problem, o.System = rejected, operatorapi.System{Name: "avs", State: "closed", CallsLimit: 10}
			},
			"AvS rejects the credentials (avs)",
		},
		"Down": {
			"the breaker says why all operations of the system wait",
			func(o *operatorapi.Operation) {
				o.Problem, o.System = rejected, operatorapi.System{Name: "avs", State: "open", Failures: 5, FailingSince: ago(20), LastFault: "EOF", NextTry: ago(-2)}
			},
			"avs: 5 failed calls in a row since 2026-05-01 10:04:40Z; last error: EOF; next call in 2s",
		},
		"Long": {
			"an operation that runs for an hour without an error is at a step",
			func(o *operatorapi.Operation) {
				o.Problem, o.Stage, o.Step, o.Stages, o.StepBegan, o.Timeline = operatorapi.Problem{}, "check", "Check_Runtime", []string{"start", "check"}, ago(20), nil
				o.Why, o.Replica, o.Attempt, o.State = "Gardener is at 40%", "", 4, operatorapi.OperationStateInProgress
			},
			"check (2 of 2), Check_Runtime, attempt 4, since 2026-05-01 10:04:40Z: Gardener is at 40%",
		},
		"Unclaimed": {
			"an operation that no worker has claimed has no step",
			func(o *operatorapi.Operation) {
				o.Problem, o.Stage, o.Step, o.Replica, o.NextRun = operatorapi.Problem{}, "", "", "", ago(20)
				o.InstanceID, o.Kind, o.State = "one", "provision", operatorapi.OperationStateInProgress
			},
			"The provision operation of instance one is due and waiting for a free worker",
		},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := explain.Of(operation(test.change), now).Cause(); got != test.want {
				t.Errorf("%s:\ngot  %s\nwant %s", test.reason, got, test.want)
			}
		})
	}
}
