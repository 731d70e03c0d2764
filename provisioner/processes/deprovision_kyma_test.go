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

// createdCluster sets the status of a Shoot whose cluster has been created.
func createdCluster(s *gardencorev1beta1.Shoot) {
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
		t.Errorf("running operations store the names of stages, -want +got:\n%s", diff)
	}
}

// TestNoFaultLeavesAServiceOrACluster injects a fault into each call that a removal makes, one at a time: either the call or
// its response is lost. After every fault the removal must delete the service instances, Kyma and the cluster.
func TestNoFaultLeavesAServiceOrACluster(t *testing.T) {
	newFixture := func() *removalFixture {
		f := newRemoval(runtimeID, createdCluster)
		f.reads, f.services, f.finalizers, f.parts = 2, 3, true, 3

		return f
	}

	whole := newFixture()
	runRemovalToEnd(t, whole, whole.withKyma())

	for failing := range len(whole.calls) + 1 {
		for _, unsent := range []bool{true, false} {
			f := newFixture()
			f.failing, f.unsent = failing, unsent
			runRemovalToEnd(t, f, f.withKyma())

			if f.services+f.parts+f.connected != 0 || f.finalizers || f.shoot != nil || !f.deletedAt.Equal(now) {
				t.Errorf("call %d of %v fails, unsent %t: remaining: %d services, %d parts of Kyma, %d connections, finalizers of brokers: %t, cluster %v, deleted at %s",
					failing, whole.calls, unsent, f.services, f.parts, f.connected, f.finalizers, f.shoot, f.deletedAt)
			}
		}
	}
}

func TestCleanupSkipsUnreachableClusters(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		fixture *removalFixture
	}{
		"gone":          {"the cluster does not exist", &removalFixture{}},
		"foreign":       {"the Shoot belongs to another runtime", newRemoval("runtime-2", createdCluster)},
		"being deleted": {"the Shoot is being deleted", newRemoval(runtimeID, func(s *gardencorev1beta1.Shoot) { createdCluster(s); s.DeletionTimestamp = new(metav1.Now()) })},
		"hibernated":    {"the API server is not running", newRemoval(runtimeID, func(s *gardencorev1beta1.Shoot) { createdCluster(s); s.Status.IsHibernated = true })},
		"not started":   {"Gardener has not started the creation", newRemoval(runtimeID, nil)},
		"hibernating": {
			"the API server is about to stop", newRemoval(runtimeID, func(s *gardencorev1beta1.Shoot) {
				createdCluster(s)
				s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
			}),
		},
		"creation canceled": {
			"the creation was canceled before anything was installed", newRemoval(runtimeID, func(s *gardencorev1beta1.Shoot) {
				createdCluster(s)
				s.Status.LastOperation.State = gardencorev1beta1.LastOperationStateProcessing
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stage := range c.fixture.withKyma().Stages[:3] {
				if _, wait, err := run(t, stage.Steps[0].Step.Run, newRemovalOperation(t)); err != nil || wait != 0 {
					t.Errorf("%s: %s: got wait %s, %v", c.reason, stage.Name, wait, err)
				}
			}

			if diff := cmp.Diff([]string{"get", "get", "get"}, c.fixture.calls); diff != "" {
				t.Errorf("%s: calls -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestCleanupIsBounded checks that a removal continues once the cleanup has exceeded its limits.
func TestCleanupIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		services int
		parts    int
		err      error
		takes    time.Duration
		skipped  []string
	}{
		"clean": {reason: "the cluster is empty"},
		"services stay": {
			reason: "the service broker does not respond", services: 1 << 30, takes: 20 * time.Minute, skipped: []string{"Clean_Up_Cluster"},
		},
		"Kyma stays": {reason: "parts of Kyma have finalizers", parts: 1 << 30, takes: 5 * time.Minute, skipped: []string{"Uninstall_Kyma"}},
		"does not respond": {
			reason: "a broken cluster is deleted anyway", err: errLost, takes: 27 * time.Minute,
			skipped: []string{"Clean_Up_Cluster", "Release_Service_Brokers", "Uninstall_Kyma"},
		},
		"refuses": {
			reason: "a permanent error does not prevent the deletion", err: failure.New(failure.Permanent, "no"), takes: 27 * time.Minute,
			skipped: []string{"Clean_Up_Cluster", "Release_Service_Brokers", "Uninstall_Kyma"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newRemoval(runtimeID, createdCluster)
				f.services, f.finalizers, f.parts, f.clusterError = c.services, true, c.parts, c.err

				began := time.Now()

				ended := runInEngine(t, f.withKyma())
				if ended.State != process.Succeeded || !slices.Equal(ended.SkippedSteps, c.skipped) {
					t.Errorf("%s: ended in state %s %v with skipped steps %v, want %v", c.reason, ended.State, ended.Problem, ended.SkippedSteps, c.skipped)
				}

				if f.finalizers != (c.err != nil) {
					t.Errorf("%s: the service brokers have finalizers: %t", c.reason, f.finalizers)
				}

				if took := time.Since(began); took < c.takes || took > c.takes+2*time.Minute {
					t.Errorf("%s: took %s, want about %s", c.reason, took, c.takes)
				}
			})
		})
	}
}
