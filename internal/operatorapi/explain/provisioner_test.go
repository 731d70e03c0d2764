package explain_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
)

func TestOfProvisioner(t *testing.T) {
	t.Parallel()

	failed := operation(func(o *operatorapi.Operation) {
		o.Kind, o.State, o.FinishedAt = "ProvisionNoInstall", "failed", ago(60)
		o.Problem = operatorapi.Problem{Message: "no answer", Component: failure.ComponentProvisioner}
	})

	got := explain.OfProvisioner(failed, now)
	if want := "The ProvisionNoInstall operation of runtime i failed after 4m00s."; got.Summary != want {
		t.Errorf("the summary is %q, want %q", got.Summary, want)
	}

	want := []string{"After fixing the cause, run the failed stage again: ebctl provisioner operation retry op --reason REASON"}
	if diff := cmp.Diff(want, got.Advice); diff != "" {
		t.Errorf("the advice names commands for the Provisioner: -want +got\n%s", diff)
	}
}

func TestOfProvisionerAfterACanceledCreation(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{"Provision", "ProvisionNoInstall"} {
		canceled := operation(func(o *operatorapi.Operation) {
			o.Kind, o.State, o.StartedAt, o.FinishedAt = kind, "canceled", ago(290), ago(60)
		})

		want := []string{
			"List the operations of the runtime: ebctl provisioner operation list --runtime i",
			"To retry the operation: ebctl provisioner operation retry op --reason REASON",
			"The cancellation removed nothing: the Shoot may exist. It stays until a client of the Provisioner sends the mutation " +
				`deprovisionRuntime(id: "i").`,
		}
		if diff := cmp.Diff(want, explain.OfProvisioner(canceled, now).Advice); diff != "" {
			t.Errorf("%s: a canceled creation leaves its cluster: -want +got\n%s", kind, diff)
		}
	}
}

// TestAdviceForTheProvisionerFits checks that the advice for the Provisioner contains no words that are only correct for the
// broker.
func TestAdviceForTheProvisionerFits(t *testing.T) {
	t.Parallel()

	given := 0

	for _, state := range []string{"pending", "in progress", "canceling", "succeeded", "failed", "canceled"} {
		for _, component := range []string{
			"", failure.ComponentProvisioner, failure.ComponentGardener, failure.ComponentGardenerClient, failure.ComponentRuntime,
		} {
			shown := operation(func(o *operatorapi.Operation) {
				o.State, o.Kind, o.Skippable, o.NextRun = operatorapi.OperationState(state), "Deprovision", true, ago(600)
				o.SkippedSteps = []string{"Clean_Up_Cluster"}

				if component != "" {
					o.Problem = operatorapi.Problem{Message: "no answer", Reason: failure.ReasonInternal, Component: component}
				}
			})

			for _, advice := range explain.OfProvisioner(shown, now).Advice {
				given++

				for _, word := range []string{"broker", "instance", "ebctl operation", "APP_PROVISIONER_URL"} {
					if strings.Contains(advice, word) {
						t.Errorf("%s, %q: %q has the word %q", state, component, advice, word)
					}
				}
			}
		}
	}

	if given < 20 {
		t.Errorf("got %d pieces of advice: the cases do not cover the rules", given)
	}
}
