package processes

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// standing is a cluster that Gardener has made.
func standing(s *gardencorev1beta1.Shoot) {
	s.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeCreate, State: gardencorev1beta1.LastOperationStateSucceeded,
	}
}

func TestDeprovisionStagesWithKyma(t *testing.T) {
	whole := newRemoval(runtimeID, nil).withKyma()
	if err := whole.Validate(); err != nil {
		t.Error(err)
	}

	want := append([]string{"CleanupCluster", "ReleasingServiceBrokers", "TriggerKymaUninstall"}, newRemoval(runtimeID, nil).process().StageNames()...)
	if diff := cmp.Diff(want, whole.StageNames()); diff != "" {
		t.Errorf("operations that run know their stages by name, -want +got:\n%s", diff)
	}
}

// TestNoCrashLeavesAServiceOrACluster has each call of a removal go wrong in turn: before it arrives, or with its answer lost.
func TestNoCrashLeavesAServiceOrACluster(t *testing.T) {
	begin := func() *removalFixture {
		w := newRemoval(runtimeID, standing)
		w.looks, w.services, w.held, w.parts = 2, 3, true, 3

		return w
	}

	whole := begin()
	carryRemoval(t, whole, whole.withKyma())

	for broken := range len(whole.calls) + 1 {
		for _, unsent := range []bool{true, false} {
			w := begin()
			w.broken, w.unsent = broken, unsent
			carryRemoval(t, w, w.withKyma())

			if w.services+w.parts+w.connected != 0 || w.held || w.shoot != nil || !w.deletedAt.Equal(now) {
				t.Errorf("call %d of %v goes wrong, unsent %t: %d services, %d parts of Kyma, %d connections are left, brokers are held %t, cluster %v, deleted at %s",
					broken, whole.calls, unsent, w.services, w.parts, w.connected, w.held, w.shoot, w.deletedAt)
			}
		}
	}
}

func TestClusterInWhichNothingIsCleanedUp(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		world  *removalFixture
	}{
		"gone":        {"there is none", &removalFixture{}},
		"foreign":     {"the name was given to another runtime's cluster", newRemoval("runtime-2", standing)},
		"leaving":     {"it goes already", newRemoval(runtimeID, func(s *gardencorev1beta1.Shoot) { standing(s); s.DeletionTimestamp = new(metav1.Now()) })},
		"asleep":      {"nobody answers in it", newRemoval(runtimeID, func(s *gardencorev1beta1.Shoot) { standing(s); s.Status.IsHibernated = true })},
		"not noticed": {"Gardener has not begun to make it", newRemoval(runtimeID, nil)},
		"falling asleep": {
			"soon nobody answers in it", newRemoval(runtimeID, func(s *gardencorev1beta1.Shoot) {
				standing(s)
				s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
			}),
		},
		"half made": {
			"its creation was canceled, nothing is in it", newRemoval(runtimeID, func(s *gardencorev1beta1.Shoot) {
				standing(s)
				s.Status.LastOperation.State = gardencorev1beta1.LastOperationStateProcessing
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stage := range c.world.withKyma().Stages[:3] {
				if _, wait, err := run(t, stage.Steps[0].Step.Run, newRemovalOperation(t)); err != nil || wait != 0 {
					t.Errorf("%s: %s comes back after %s, %v", c.reason, stage.Name, wait, err)
				}
			}

			if diff := cmp.Diff([]string{"get", "get", "get"}, c.world.calls); diff != "" {
				t.Errorf("%s: calls -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestCleanupIsNotWaitedForForEver lets the engine carry removals of clusters that do not come to rest.
func TestCleanupIsNotWaitedForForEver(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		services int
		parts    int
		err      error
		takes    time.Duration
		skipped  []string
	}{
		"clean": {reason: "nothing is in the cluster"},
		"services stay": {
			reason: "their broker does not answer", services: 1 << 30, takes: 20 * time.Minute, skipped: []string{"Clean_Up_Cluster"},
		},
		"Kyma stays": {reason: "something keeps it from going", parts: 1 << 30, takes: 5 * time.Minute, skipped: []string{"Uninstall_Kyma"}},
		"does not answer": {
			reason: "the cluster is broken and goes anyway", err: errLost, takes: 27 * time.Minute,
			skipped: []string{"Clean_Up_Cluster", "Release_Service_Brokers", "Uninstall_Kyma"},
		},
		"refuses": {
			reason: "what would fail another operation does not keep a cluster from going", err: failure.New(failure.Permanent, "no"), takes: 27 * time.Minute,
			skipped: []string{"Clean_Up_Cluster", "Release_Service_Brokers", "Uninstall_Kyma"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRemoval(runtimeID, standing)
				w.services, w.held, w.parts, w.inside = c.services, true, c.parts, c.err

				began := time.Now()

				ended := runWhole(t, w.withKyma())
				if ended.State != process.Succeeded || !slices.Equal(ended.SkippedSteps, c.skipped) {
					t.Errorf("%s: ended %s %v, not completed are %v, want %v", c.reason, ended.State, ended.Problem, ended.SkippedSteps, c.skipped)
				}

				if w.held != (c.err != nil) {
					t.Errorf("%s: service brokers are held %t", c.reason, w.held)
				}

				if took := time.Since(began); took < c.takes || took > c.takes+2*time.Minute {
					t.Errorf("%s: took %s, want about %s", c.reason, took, c.takes)
				}
			})
		})
	}
}
