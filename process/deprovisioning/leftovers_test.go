package deprovisioning

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// TestCleanupRunsOnlyWhatWasNotCompleted checks which stages a cleanup runs.
func TestCleanupRunsOnlyWhatWasNotCompleted(t *testing.T) {
	options := Options{Accounts: &fakePool{}, Kind: ours, Limit: time.Hour}
	cleanup := Cleanup(options)

	cases := map[string]struct {
		reason      string
		steps, want []string
	}{
		"EDP":     {"one step", []string{"EDP_Deregistration"}, []string{"EDP_Deregistration", "Remove_Instance"}},
		"removal": {"a removal that was not requested has to be awaited, too", []string{"Remove_Runtime"}, []string{"Remove_Runtime", "Check_Runtime_Removal", "Remove_Instance"}},
		"check":   {"the wait belongs to a request", []string{"Check_Runtime_Removal"}, []string{"Remove_Runtime", "Check_Runtime_Removal", "Remove_Instance"}},
		"several": {"in the order of the process", []string{"IAS_Deregistration", "EDP_Deregistration"}, []string{"EDP_Deregistration", "IAS_Deregistration", "Remove_Instance"}},
		"former":  {"a step of an earlier release", []string{"Former_Step"}, []string{"Remove_Instance"}},
	}

	for name, c := range cases {
		finished := FinishedStages(cleanup, c.steps)

		var runs []string

		for _, stage := range cleanup.StageNames() {
			if !slices.Contains(finished, stage) {
				runs = append(runs, stage)
			}
		}

		if diff := cmp.Diff(c.want, runs); diff != "" {
			t.Errorf("%s: %s, -want +got:\n%s", name, c.reason, diff)
		}
	}
}

// TestStepsThatLeaveSomething checks what the last steps record as not completed.
func TestStepsThatLeaveSomething(t *testing.T) {
	cases := map[string]struct {
		reason               string
		runtimeID            string
		skipped              []string
		wantLeft, wantPaused []string // after a deletion or cleanup, and after a suspension
	}{
		"complete": {"nothing was skipped", "runtime", nil, nil, nil},
		"EDP":      {"a suspended instance keeps its objects", "", []string{"EDP_Deregistration"}, []string{"EDP_Deregistration"}, nil},
		"runtime": {
			"nobody may ever find a runtime without an instance", "runtime",
			[]string{"Remove_Runtime", "EDP_Deregistration"},
			[]string{"Remove_Runtime", "EDP_Deregistration"},
			[]string{"Remove_Runtime"},
		},
		"none":    {"an instance without a runtime leaves none", "", []string{"Remove_Runtime", "Check_Runtime_Removal"}, nil, nil},
		"account": {"the sweep of the account pool releases it", "runtime", []string{"Release_Subscription"}, nil, nil},
	}

	for name, c := range cases {
		w := newFixture(environment.Data{})
		operation := newOperation(environment.Data{Instance: withRuntime(c.runtimeID)})
		operation.SkippedSteps = c.skipped

		for i, last := range []Step{removeInstance(w), removeLeftover(w), suspendInstance(w)} {
			w.left = []string{"unset"}
			done(t, last, operation)

			if diff := cmp.Diff([][]string{c.wantLeft, c.wantLeft, c.wantPaused}[i], w.left, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s: %s, -want +got:\n%s", name, last.Name(), c.reason, diff)
			}
		}
	}

	operation := newOperation(environment.Data{Ordered: true})
	operation.SkippedSteps = []string{"Remove_Runtime"}

	w := newFixture(environment.Data{})
	if done(t, removeInstance(w), operation); len(w.left) != 1 {
		t.Error("an ordered runtime whose ID never arrived may be left")
	}
}

func TestStepsForObjects(t *testing.T) {
	objects := []environment.OutsideObject{{System: environment.SystemIAS}, {System: environment.SystemEDP}, {System: environment.SystemIAS}, {System: "other"}}

	if diff := cmp.Diff([]string{"IAS_Deregistration", "EDP_Deregistration"}, StepsFor(objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
