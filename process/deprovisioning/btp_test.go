package deprovisioning

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/stepstest"
)

// fakeRuntimes has service instances in its runtime. Each call removes one of them, or all if it abandons them, or none if err is set.
type fakeRuntimes struct {
	left      int
	err       error
	abandoned bool
	calls     int
}

func (f *fakeRuntimes) RemoveServiceInstances(_ context.Context, _ environment.Instance, abandon bool) (int, error) {
	f.calls++

	if f.err != nil {
		return 0, f.err
	}

	f.abandoned = abandon

	if f.left = max(0, f.left-1); abandon {
		f.left = 0
	}

	return f.left, nil
}

// TestBTPOperatorCleanup checks one attempt of the step.
//
//faults:table btp.md#errors
func TestBTPOperatorCleanup(t *testing.T) {
	away := failure.New(failure.Transient, "away")

	cases := map[string]struct {
		reason    string
		runtimes  fakeRuntimes
		deleted   bool // the subaccount
		wait      time.Duration
		abandoned bool
	}{
		"is gone, does not exist yet, or has no such custom resources/none":                             {"no service instances", fakeRuntimes{}, false, 0, false},
		"still has service instances/some":                                                              {"the operator needs time", fakeRuntimes{left: 4}, false, 10 * time.Second, false},
		"still has service instances/last":                                                              {"the last one is gone", fakeRuntimes{left: 1}, false, 0, false},
		"is unreachable, slow, returns no JSON, or answers an error to BTPOperator_Cleanup/unreachable": {"the runtime may respond later", fakeRuntimes{err: away}, false, 10 * time.Second, false},
		"is unreachable, slow, returns no JSON, or answers an error to BTPOperator_Cleanup/rejected":    {"even a rejection must not fail the removal", fakeRuntimes{err: failure.New(failure.Permanent, "no")}, false, 10 * time.Second, false},
		"is gone, does not exist yet, or has no such custom resources/gone":                             {"the cluster is gone", fakeRuntimes{err: failure.New(failure.NotFound, "no runtime")}, false, 0, false},
		"is gone, does not exist yet, or has no such custom resources/not yet":                          {"the cluster does not exist yet", fakeRuntimes{err: failure.New(failure.Waiting, "creating")}, false, 0, false},
		"still has service instances/deleted subaccount":                                                {"the operator cannot log in any more", fakeRuntimes{left: 3}, true, 0, true},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			operation := newOperation(environment.Data{Instance: withRuntime("r"), SubaccountDeleted: c.deleted})

			after, wait, err := run(t, cleanBTP{runtimes: &c.runtimes}, operation)
			if err != nil || wait != c.wait || c.runtimes.abandoned != c.abandoned || c.runtimes.calls != 1 {
				t.Errorf("%s: got wait %s, %v, abandoned %t, %d calls", c.reason, wait, err, c.runtimes.abandoned, c.runtimes.calls)
			}

			if c.runtimes.err == nil && c.wait > 0 {
				faulttable.Shows(t, "btp.md#errors", name, stepstest.Shown(after, err))
			}
		})
	}
}

// TestBTPOperatorCleanupRunsIf checks for which operations the step runs.
func TestBTPOperatorCleanupRunsIf(t *testing.T) {
	own := instance()
	own.Request.Cluster = environment.Cluster{Own: &environment.OwnCluster{}}

	cases := map[string]struct {
		kind string
		data environment.Data
		want bool
	}{
		"suspension":         {kind: environment.KindSuspend, data: environment.Data{Instance: withRuntime("r")}, want: true},
		"without runtime":    {kind: environment.KindSuspend, data: environment.Data{Instance: instance()}},
		"deletion":           {kind: environment.KindDeprovision, data: environment.Data{Instance: withRuntime("r")}},
		"deleted subaccount": {kind: environment.KindDeprovision, data: environment.Data{Instance: withRuntime("r"), SubaccountDeleted: true}, want: true},
		"a tenant's cluster": {kind: environment.KindDeprovision, data: environment.Data{Instance: own, SubaccountDeleted: true}, want: true},
	}

	for name, c := range cases {
		options := Options{Runtimes: &fakeRuntimes{}, Kind: ours, Limit: time.Hour}
		stages := map[string]func() bool{
			environment.KindSuspend:     func() bool { return Suspension(options).Stages[1].Steps[0].When.Met(newOperation(c.data)) },
			environment.KindDeprovision: func() bool { return Process(options).Stages[1].Steps[0].When.Met(newOperation(c.data)) },
		}

		if got := stages[c.kind](); got != c.want {
			t.Errorf("%s: the step runs: %t", name, got)
		}
	}

	for _, stage := range Cleanup(Options{Runtimes: &fakeRuntimes{}, Kind: ours, Limit: time.Hour}).Stages {
		if stage.Name == (cleanBTP{}).Name() {
			t.Error("a cleanup of leftovers has the step, but no runtime")
		}
	}

	if got := notCompleted(newOperation(environment.Data{Instance: withRuntime("r")})); len(got) != 0 {
		t.Errorf("no step was skipped, got %v", got)
	}

	skipped := newOperation(environment.Data{Instance: withRuntime("r")})
	skipped.SkippedSteps = []string{cleanBTP{}.Name(), "EDP_Deregistration"}

	if got := notCompleted(skipped); len(got) != 1 || got[0] != "EDP_Deregistration" {
		t.Errorf("a cleanup without its runtime: got %v", got)
	}
}

// TestBTPOperatorCleanupGivesUp checks that the last attempt abandons the objects, and that its error does not stop the operation.
//
//faults:row btp.md#errors is unreachable, slow, returns no JSON, or answers an error to BTPOperator_Cleanup
//faults:row btp.md#errors still has service instances
func TestBTPOperatorCleanupGivesUp(t *testing.T) {
	for _, err := range []error{nil, errors.New("away")} {
		runtimes := &fakeRuntimes{left: 9, err: err}
		operation := process.NewFailingOperation(process.Record{ID: removal, InstanceID: instanceID},
			environment.Data{Instance: withRuntime("r")}, began, began.Add(5*time.Minute))

		_, wait, got := run(t, cleanBTP{runtimes: runtimes}, operation)
		if got != nil || wait != 0 || runtimes.calls != 2 || runtimes.abandoned != (err == nil) {
			t.Errorf("with %v: got wait %s, %v, %d calls, abandoned %t", err, wait, got, runtimes.calls, runtimes.abandoned)
		}
	}
}
