package processes

import (
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

func TestProvisionStages(t *testing.T) {
	provision := newGarden().process()
	if err := provision.Validate(); err != nil {
		t.Error(err)
	}

	want := []string{"CreatingCluster", "WaitingForClusterDomain", "WaitingForClusterCreation", "CreatingBindingsForOperators"}
	if diff := cmp.Diff(want, provision.StageNames()); diff != "" {
		t.Errorf("running operations store the names of stages, -want +got:\n%s", diff)
	}
}

func TestProvisionStagesWithKyma(t *testing.T) {
	whole := newGarden().options().provisionWithKyma()
	if err := whole.Validate(); err != nil || whole.Kind != operation.KindProvision {
		t.Errorf("got kind %s, %v", whole.Kind, err)
	}

	want := append(newGarden().process().StageNames(), "StartingInstallation", "WaitingForInstallation")
	if diff := cmp.Diff(want, whole.StageNames()); diff != "" {
		t.Errorf("with Kyma the stages differ only at the end, -want +got:\n%s", diff)
	}
}

func TestCreateShoot(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

	g := newGarden()
	options := g.options()
	options.Traceparent = func(record process.Record) string {
		if record.ID != "op-1" {
			t.Errorf("the trace is that of operation %s", record.ID)
		}

		return trace
	}

	for range 2 {
		got, wait, err := run(t, options.createShoot, newCreation(stored(t, creationData())))
		if err != nil || wait != 0 || got.WaitingFor != operation.ShootEvent(shootName) {
			t.Fatalf("got wait %s, event %q, %v", wait, got.WaitingFor, err)
		}
	}

	if g.applied != 1 || len(g.shoots) != 1 {
		t.Errorf("created %d Shoots: %v", g.applied, g.shoots)
	}

	if got := g.shoots[shootName].Annotations[shoot.AnnotationTraceparent]; got != trace {
		t.Errorf("the Shoot has the trace %q, want that of the operation", got)
	}
}

func TestCreateShootFailures(t *testing.T) {
	refuse := func(runtimes.Runtime, string) (*shoot.Objects, error) {
		return nil, failure.New(failure.Invalid, "no such machine")
	}

	cases := map[string]struct {
		reason    string
		garden    *creationFixture
		build     func(runtimes.Runtime, string) (*shoot.Objects, error)
		want      failure.Kind
		wantCalls []string
	}{
		"unbuildable": {"an order without a Shoot is not applied", newGarden(), refuse, failure.Invalid, nil},
		"unavailable": {
			"errors are left to the retry policy",
			&creationFixture{faults: faults{err: failure.New(failure.Transient, "unavailable")}}, buildShoot,
			failure.Transient,
			[]string{"apply"},
		},
		"foreign Shoot": {
			"a Shoot of another runtime is not taken over",
			newGarden().with(func(s *gardencorev1beta1.Shoot) { s.Annotations = nil }), buildShoot,
			failure.Conflict,
			[]string{"apply"},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := c.garden.options()
			options.Build = c.build

			_, wait, err := run(t, options.createShoot, newCreation(creationData()))
			if !failure.Is(err, c.want) || wait != 0 {
				t.Errorf("%s: got wait %s, %v", c.reason, wait, err)
			}

			if !cmp.Equal(c.wantCalls, c.garden.calls) {
				t.Errorf("%s: calls %v, want %v", c.reason, c.garden.calls, c.wantCalls)
			}
		})
	}
}

func TestWaitingSteps(t *testing.T) {
	domain := func(name *string) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { s.Spec.DNS = &gardencorev1beta1.DNS{Domain: name} }
	}

	const (
		succeeded = gardencorev1beta1.LastOperationStateSucceeded
		failed    = gardencorev1beta1.LastOperationStateFailed
	)

	cases := map[string]struct {
		reason      string
		creation    bool // whether the step waits for the creation instead of the domain
		garden      *creationFixture
		overdue     bool
		wantWait    time.Duration
		wantKind    failure.Kind
		wantText    string
		wantRetries int // calls to Retry in two runs
	}{
		"no DNS":       {reason: "the Shoot is new", garden: newGarden().with(nil), wantWait: poll},
		"no domain":    {reason: "the Shoot is new", garden: newGarden().with(domain(nil)), wantWait: poll},
		"empty domain": {reason: "the Shoot is new", garden: newGarden().with(domain(new(""))), wantWait: poll},
		"domain":       {reason: "the domain is set", garden: newGarden().with(domain(new("c-first.example.com")))},
		"no Shoot": {
			reason: "the Shoot was deleted by someone else", garden: newGarden(), wantKind: failure.NotFound, wantText: shootName,
		},
		"no domain in time": {
			reason: "Gardener found no Seed", garden: newGarden().with(nil), overdue: true, wantKind: failure.Permanent, wantText: "not done within 0s: the cluster has no domain yet: Gardener has not started to reconcile the cluster yet",
		},
		"failed without a domain": {
			reason: "an error that only a person can fix is returned immediately", garden: newGarden().with(lastOperation(failed, gardencorev1beta1.ErrorInfraQuotaExceeded)),
			wantKind: failure.Quota, wantText: "out of luck",
		},
		"deleted without a domain": {
			reason: "the Shoot is being deleted by someone else", wantKind: failure.Conflict, wantText: "is being deleted",
			garden: newGarden().with(func(s *gardencorev1beta1.Shoot) { s.DeletionTimestamp = new(metav1.NewTime(now)) }),
		},
		"new":         {reason: "Gardener has not noticed the Shoot", creation: true, garden: newGarden().with(nil), wantWait: poll},
		"in progress": {reason: "the creation takes time", creation: true, garden: newGarden().with(lastOperation(gardencorev1beta1.LastOperationStateProcessing)), wantWait: poll},
		"in error":    {reason: "Gardener retries by itself", creation: true, garden: newGarden().with(lastOperation(gardencorev1beta1.LastOperationStateError, gardencorev1beta1.ErrorInfraQuotaExceeded)), wantWait: poll},
		"created":     {reason: "the cluster is created", creation: true, garden: newGarden().with(lastOperation(succeeded))},
		"failed": {
			reason: "an error that only a person can fix is returned immediately", creation: true, garden: newGarden().with(lastOperation(failed, gardencorev1beta1.ErrorInfraQuotaExceeded)),
			wantKind: failure.Quota, wantText: "out of luck",
		},
		"stopped": {
			reason: "Gardener is asked to retry", creation: true, garden: newGarden().with(lastOperation(failed, gardencorev1beta1.ErrorInfraRateLimitsExceeded)),
			wantWait: poll, wantRetries: 2,
		},
		"no cluster": {
			reason: "the Shoot was deleted by someone else", creation: true, garden: newGarden(), wantKind: failure.NotFound, wantText: shootName,
		},
		"not created in time": {
			reason: "the wait is bounded", creation: true, overdue: true, garden: newGarden().with(lastOperation(gardencorev1beta1.LastOperationStateProcessing)),
			wantKind: failure.Permanent, wantText: "not done within 0s: Gardener is at 42%: creating DNS",
		},
		"created at the last moment": {reason: "a finished creation is never overdue", creation: true, overdue: true, garden: newGarden().with(lastOperation(succeeded))},
		"unavailable":                {reason: "errors are left to the retry policy", creation: true, garden: &creationFixture{faults: faults{err: errLost}}, wantKind: failure.Transient, wantText: "lost"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			limit := time.Hour
			if c.overdue {
				limit = 0
			}

			run := func(op operation.Operation) (operation.Operation, time.Duration, error) {
				if c.creation {
					return run(t, creationWait(c.garden, limit), op)
				}

				options := c.garden.options()
				options.Timeouts.Domain = limit

				return run(t, options.waitForDomain, op)
			}

			for range 2 {
				op := newCreation(stored(t, creationData()))
				op.WaitingFor = operation.ShootEvent(shootName)

				got, wait, err := run(op)
				if wait != c.wantWait || (err == nil) != (c.wantKind == "") {
					t.Fatalf("%s: got wait %s, %v", c.reason, wait, err)
				}

				if err != nil && (failure.KindOf(err) != c.wantKind || !strings.Contains(failure.Of(err).ForOperators(), c.wantText)) {
					t.Errorf("%s: got %s %q", c.reason, failure.KindOf(err), failure.Of(err).ForOperators())
				}

				if wait > 0 && got.WaitingFor == "" {
					t.Errorf("%s: changes of the Shoot do not wake the step", c.reason)
				}
			}

			if c.garden.retried != c.wantRetries {
				t.Errorf("%s: Gardener was asked to retry %d times, want %d", c.reason, c.garden.retried, c.wantRetries)
			}
		})
	}
}

func TestFailedRetryRequest(t *testing.T) {
	g := newGarden().with(lastOperation(gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.ErrorInfraRateLimitsExceeded))
	g.failing = 2

	if _, wait, err := run(t, creationWait(g, time.Hour), newCreation(creationData())); !failure.Is(err, failure.Transient) || wait != 0 {
		t.Errorf("got wait %s, %v", wait, err)
	}
}
