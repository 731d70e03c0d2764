package processes

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/installation"
)

// TestForgetBundles removes runtimes that a bundle provisioner knows. The step runs after the deletion of the cluster, waits, and never
// blocks the removal.
func TestForgetBundles(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		// answers are the results of the calls; the last one is repeated.
		answers []error
		calls   int
		skipped []string
	}{
		"removed": {"the first call is done", []error{nil}, 1, nil},
		"waits":   {"an unfinished or failed call is repeated", []error{errUnfinished, failure.New(failure.Transient, "away"), nil}, 3, nil},
		"away":    {"the removal continues after five minutes", []error{failure.New(failure.Transient, "away")}, 0, []string{"Forget_Bundles"}},
		"stuck":   {"the removal continues although objects are left", []error{errUnfinished}, 0, []string{"Forget_Bundles"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newRemoval(runtimeID, createdCluster)
				options, calls := f.options(), 0

				options.ForgetBundles = func(_ context.Context, id string) (installation.Progress, error) {
					if f.shoot != nil || id != runtimeID {
						t.Errorf("%s: forgetting %s while the cluster is %v", test.reason, id, f.shoot)
					}

					answer := test.answers[min(calls, len(test.answers)-1)]
					calls++

					if errors.Is(answer, errUnfinished) {
						return installation.Progress{Message: "removing component a"}, nil
					}

					return installation.Progress{Done: answer == nil}, answer
				}

				ended := runInEngine(t, options.deprovision())
				if ended.State != process.Succeeded || !slices.Equal(ended.SkippedSteps, test.skipped) {
					t.Errorf("%s: ended in state %s %v with skipped steps %v, want %v", test.reason, ended.State, ended.Problem, ended.SkippedSteps, test.skipped)
				}

				if test.calls > 0 && calls != test.calls || test.calls == 0 && calls < 3 || f.deletedAt.IsZero() {
					t.Errorf("%s: %d calls, deleted at %s", test.reason, calls, f.deletedAt)
				}
			})
		})
	}
}

// errUnfinished stands for a call that is not done.
var errUnfinished = failure.New(failure.Transient, "unfinished")
