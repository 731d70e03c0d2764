package processes

import (
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// shootInState returns a fixture whose Shoot has been in the given state for the duration since.
func shootInState(state gardencorev1beta1.LastOperationState, since time.Duration, codes ...gardencorev1beta1.ErrorCode) *creationFixture {
	return newGarden().with(func(shoot *gardencorev1beta1.Shoot) {
		lastOperation(state, codes...)(shoot)
		shoot.Status.LastOperation.LastUpdateTime = metav1.NewTime(now.Add(-since))
	})
}

// runWait runs one attempt of a waiting step with a limit.
func runWait(
	t *testing.T, step func(Options) process.RunFunc[operation.Data], g *creationFixture, limit time.Duration,
) (time.Duration, error) {
	t.Helper()

	options := Options{Shoots: g, Poll: poll, Timeouts: Timeouts{Refresh: limit, Creation: limit}}
	_, wait, err := run(t, step(options), newCreation(creationData()))

	return wait, err
}

func refresh(o Options) process.RunFunc[operation.Data] { return o.waitForRefresh }

func creation(o Options) process.RunFunc[operation.Data] {
	return o.waitForShoot(o.Timeouts.Creation, nil)
}

func TestGardenerIsAskedToRetryAfterAPause(t *testing.T) {
	const failed, limit = gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.ErrorInfraRateLimitsExceeded

	cases := map[string]struct {
		reason string
		garden *creationFixture
		want   int
	}{
		"At once": {"A rate limit is not retried immediately.", shootInState(failed, time.Second, limit), 0},
		"Later":   {"After a pause, a retry may be within the rate limit.", shootInState(failed, time.Minute, limit), 1},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if wait, err := runWait(t, creation, tc.garden, time.Hour); wait != poll || err != nil {
				t.Errorf("got wait %s, %v", wait, err)
			}

			if tc.garden.retried != tc.want {
				t.Errorf("%s\nGardener was asked to retry %d times, want %d", tc.reason, tc.garden.retried, tc.want)
			}
		})
	}
}

// TestOverdueWaitReportsTheCodes checks the reason of an operation that exceeds its limit: it consists of Gardener's error
// codes, which are more specific than a timeout.
func TestOverdueWaitReportsTheCodes(t *testing.T) {
	type cause struct{ Reason, Component string }

	cases := map[string]struct {
		reason string
		garden *creationFixture
		want   cause
	}{
		"Codes": {
			reason: "Gardener's codes are the reason.",
			garden: shootInState(gardencorev1beta1.LastOperationStateError, 0, gardencorev1beta1.ErrorInfraResourcesDepleted),
			want:   cause{"ERR_INFRA_RESOURCES_DEPLETED", failure.ComponentGardener},
		},
		"None": {
			reason: "Without a code, the reason is the timeout.",
			garden: shootInState(gardencorev1beta1.LastOperationStateProcessing, 0),
			want:   cause{failure.ReasonTimeout, ""},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := runWait(t, creation, tc.garden, 0)

			known := failure.Of(err)
			if diff := cmp.Diff(tc.want, cause{known.Reason, known.Component}); diff != "" {
				t.Errorf("%s\n%v, -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestShootDeletedDuringTheWait checks that the step that waits for a creation does not mistake a finished deletion for
// success.
func TestShootDeletedDuringTheWait(t *testing.T) {
	for name, step := range map[string]func(Options) process.RunFunc[operation.Data]{
		"Refresh": refresh, "Creation": creation,
	} {
		t.Run(name, func(t *testing.T) {
			g := shootInState(gardencorev1beta1.LastOperationStateSucceeded, 0)
			g.shoots[shootName].DeletionTimestamp = new(metav1.NewTime(now))

			if wait, err := runWait(t, step, g, time.Hour); wait != 0 || !failure.Is(err, failure.Conflict) {
				t.Errorf("got wait %s, %v", wait, err)
			}
		})
	}
}
