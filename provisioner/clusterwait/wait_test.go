package clusterwait_test

import (
	"context"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/clusterwait"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

const poll = 20 * time.Second

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// garden has one Shoot.
type garden struct {
	shoot   *gardencorev1beta1.Shoot
	retried int
}

// Get implements clusterwait.Shoots.
func (g *garden) Get(context.Context, string) (*gardencorev1beta1.Shoot, error) { return g.shoot, nil }

// Retry implements clusterwait.Shoots.
func (g *garden) Retry(context.Context, *gardencorev1beta1.Shoot) error {
	g.retried++

	return nil
}

// at is a garden whose Shoot has been in the state for the time.
func at(state gardencorev1beta1.LastOperationState, since time.Duration, codes ...gardencorev1beta1.ErrorCode) *garden {
	shoot := &gardencorev1beta1.Shoot{}
	shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
		State: state, Description: "creating DNS", LastUpdateTime: metav1.NewTime(now.Add(-since)),
	}

	if len(codes) > 0 {
		shoot.Status.LastErrors = []gardencorev1beta1.LastError{{Description: "out of luck", Codes: codes}}
	}

	return &garden{shoot: shoot}
}

func run(t *testing.T, step func(clusterwait.Options) process.Step[operation.Data], g *garden, limit time.Duration) (time.Duration, error) {
	t.Helper()

	op := process.NewOperation(process.Record{ID: "op-1"}, operation.Data{}, now)
	_, wait, err := step(clusterwait.Options{Name: "Wait", Shoots: g, Poll: poll, Limit: limit}).Run(t.Context(), op, logging.Discard())

	return wait, err
}

func TestGardenerIsAskedToGoOnWhenItHasRested(t *testing.T) {
	const failed, limit = gardencorev1beta1.LastOperationStateFailed, gardencorev1beta1.ErrorInfraRateLimitsExceeded

	cases := map[string]struct {
		reason string
		garden *garden
		want   int
	}{
		"At once": {"Whoever is told that there were too many calls does not call again at once.", at(failed, time.Second, limit), 0},
		"Later":   {"What passes has had time to.", at(failed, time.Minute, limit), 1},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if wait, err := run(t, clusterwait.Settled, tc.garden, time.Hour); wait != poll || err != nil {
				t.Errorf("comes back after %s, %v", wait, err)
			}

			if tc.garden.retried != tc.want {
				t.Errorf("%s\nGardener was asked %d times, want %d", tc.reason, tc.garden.retried, tc.want)
			}
		})
	}
}

// TestWaitThatTakesTooLongFailsBecauseOfTheCodes: that something took too long says little.
func TestWaitThatTakesTooLongFailsBecauseOfTheCodes(t *testing.T) {
	type cause struct{ Reason, Component string }

	cases := map[string]struct {
		reason string
		garden *garden
		want   cause
	}{
		"Codes": {
			reason: "What Gardener has met is why it took too long.",
			garden: at(gardencorev1beta1.LastOperationStateError, 0, gardencorev1beta1.ErrorInfraResourcesDepleted),
			want:   cause{"ERR_INFRA_RESOURCES_DEPLETED", failure.ComponentGardener},
		},
		"None": {
			reason: "Without a code nobody knows why it took too long.",
			garden: at(gardencorev1beta1.LastOperationStateProcessing, 0),
			want:   cause{failure.ReasonTimeout, ""},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, clusterwait.Settled, tc.garden, 0)

			known := failure.Of(err)
			if diff := cmp.Diff(tc.want, cause{known.Reason, known.Component}); diff != "" {
				t.Errorf("%s\n%v, -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestClusterThatIsRemovedMeanwhile: a deletion that has succeeded is no success of what was ordered.
func TestClusterThatIsRemovedMeanwhile(t *testing.T) {
	for name, step := range map[string]func(clusterwait.Options) process.Step[operation.Data]{
		"TakenUp": clusterwait.TakenUp, "Settled": clusterwait.Settled,
	} {
		t.Run(name, func(t *testing.T) {
			g := at(gardencorev1beta1.LastOperationStateSucceeded, 0)
			g.shoot.DeletionTimestamp = new(metav1.NewTime(now))

			if wait, err := run(t, step, g, time.Hour); wait != 0 || !failure.Is(err, failure.Conflict) {
				t.Errorf("comes back after %s, %v", wait, err)
			}
		})
	}
}
