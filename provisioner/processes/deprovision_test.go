package processes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

func TestDeprovisionStages(t *testing.T) {
	whole := newRemoval(runtimeID, nil).process()
	if err := whole.Validate(); err != nil {
		t.Error(err)
	}

	want := []string{"DeprovisionCluster", "WaitForClusterDeletion", "RecordingDeletion", "VerifyClusterDeletion"}
	if diff := cmp.Diff(want, whole.StageNames()); diff != "" {
		t.Errorf("operations that run know their stages by name, -want +got:\n%s", diff)
	}
}

func TestDeleteShoot(t *testing.T) {
	w := newRemoval(runtimeID, nil)

	for range 2 {
		got, wait, err := run(t, w.options().deleteShoot, newRemovalOperation(t))
		if err != nil || wait != 0 || got.WaitingFor != operation.ShootEvent(shootName) || !w.deleting {
			t.Fatalf("comes back after %s, is woken by %q, %v", wait, got.WaitingFor, err)
		}
	}

	w.err = errLost
	if _, wait, err := run(t, w.options().deleteShoot, newRemovalOperation(t)); !failure.Is(err, failure.Transient) || wait != 0 {
		t.Errorf("a Gardener that is away: comes back after %s, %v", wait, err)
	}
}

func TestWaitForDeletion(t *testing.T) {
	at := func(kind gardencorev1beta1.LastOperationType, state gardencorev1beta1.LastOperationState, codes ...gardencorev1beta1.ErrorCode,
	) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) {
			s.DeletionTimestamp = &metav1.Time{Time: now}
			s.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: kind, State: state, Progress: 42, Description: "deleting DNS"}
			s.Status.LastErrors = []gardencorev1beta1.LastError{{Description: "out of luck", Codes: codes}}
		}
	}

	const (
		created = gardencorev1beta1.LastOperationTypeCreate
		deleted = gardencorev1beta1.LastOperationTypeDelete
		failed  = gardencorev1beta1.LastOperationStateFailed
	)

	cases := map[string]struct {
		reason      string
		world       *removalFixture
		overdue     bool
		wantWait    time.Duration
		wantKind    failure.Kind
		wantText    string
		wantRetries int // for two runs
	}{
		"gone":        {reason: "nothing is left", world: &removalFixture{}},
		"foreign":     {reason: "the name was given to another runtime's cluster: ours is gone", world: newRemoval("runtime-2", nil)},
		"not noticed": {reason: "it still stands as it was made", world: newRemoval(runtimeID, at(created, gardencorev1beta1.LastOperationStateSucceeded)), wantWait: poll},
		"in progress": {reason: "it takes its time", world: newRemoval(runtimeID, at(deleted, gardencorev1beta1.LastOperationStateProcessing)), wantWait: poll},
		"in error":    {reason: "Gardener goes on by itself", world: newRemoval(runtimeID, at(deleted, gardencorev1beta1.LastOperationStateError)), wantWait: poll},
		"given up for now": {
			reason: "what passes is tried again", world: newRemoval(runtimeID, at(deleted, failed, gardencorev1beta1.ErrorInfraRateLimitsExceeded)),
			wantWait: poll, wantRetries: 2,
		},
		"given up for good": {
			reason: "a cluster that is left behind costs money, so it is tried again all the same",
			world:  newRemoval(runtimeID, at(deleted, failed, gardencorev1beta1.ErrorCleanupClusterResources)), wantWait: poll, wantRetries: 2,
		},
		"not gone in time": {
			reason: "somebody has to look, and reads at what it stands", overdue: true, wantRetries: 2,
			world:    newRemoval(runtimeID, at(deleted, failed, gardencorev1beta1.ErrorCleanupClusterResources)),
			wantKind: failure.Permanent, wantText: "out of luck (ERR_CLEANUP_CLUSTER_RESOURCES: objects in the cluster are not deleted",
		},
		"gone at the last moment": {reason: "what is done has not taken too long", overdue: true, world: &removalFixture{}},
		"away":                    {reason: "what cannot be read is not gone", world: &removalFixture{err: errLost}, wantKind: failure.Transient, wantText: "lost"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := c.world.options()
			if c.overdue {
				options.Timeouts.Deletion = 0
			}

			for range 2 {
				op := newRemovalOperation(t)
				op.WaitingFor = operation.ShootEvent(shootName)

				got, wait, err := run(t, options.waitForDeletion, op)
				if wait != c.wantWait || (err == nil) != (c.wantKind == "") {
					t.Fatalf("%s: comes back after %s, %v", c.reason, wait, err)
				}

				if err != nil && (failure.KindOf(err) != c.wantKind || !strings.Contains(failure.Of(err).Text, c.wantText)) {
					t.Errorf("%s: got %s %q", c.reason, failure.KindOf(err), failure.Of(err).Text)
				}

				if wait > 0 && got.WaitingFor == "" {
					t.Errorf("%s: no change of the Shoot wakes it", c.reason)
				}
			}

			if c.world.retried != c.wantRetries {
				t.Errorf("%s: Gardener was asked to go on %d times, want %d", c.reason, c.world.retried, c.wantRetries)
			}
		})
	}
}

// TestClusterThatAppearsDuringTheWaitIsRemoved has a replica that was frozen order the cluster when the first one was gone already.
func TestClusterThatAppearsDuringTheWaitIsRemoved(t *testing.T) {
	w := newRemoval(runtimeID, nil)
	step := w.options().waitForDeletion

	if _, wait, err := run(t, step, newRemovalOperation(t)); err != nil || wait != poll || !w.deleting {
		t.Errorf("comes back after %s, deleting %t, %v", wait, w.deleting, err)
	}

	if _, wait, err := run(t, step, newRemovalOperation(t)); err != nil || wait != 0 || w.shoot != nil {
		t.Errorf("then comes back after %s, %v", wait, err)
	}

	w = newRemoval(runtimeID, nil)
	w.broken, w.unsent = 2, true

	if _, _, err := run(t, w.options().waitForDeletion, newRemovalOperation(t)); !failure.Is(err, failure.Transient) {
		t.Errorf("a removal that did not arrive ends the step with %v", err)
	}
}

func TestMarkDeleted(t *testing.T) {
	w := newRemoval(runtimeID, nil)

	for later := range 2 {
		options := w.options()
		options.Now = func() time.Time { return now.Add(time.Duration(later) * time.Hour) }

		if _, wait, err := run(t, options.markDeleted, newRemovalOperation(t)); err != nil || wait != 0 || !w.deletedAt.Equal(now) {
			t.Errorf("comes back after %s, deleted at %s, %v", wait, w.deletedAt, err)
		}
	}

	w.err = fmt.Errorf("the database is away")

	_, _, err := run(t, w.options().markDeleted, newRemovalOperation(t))
	if !failure.Is(err, failure.Transient) || failure.Of(err).Component != failure.ComponentProvisionerStorage {
		t.Errorf("a database that is away gives %v", err)
	}
}

func TestClusterThatAppearsLateIsRemoved(t *testing.T) {
	late := newRemoval(runtimeID, nil)
	step := late.options().verifyGone

	if _, wait, err := run(t, step, newRemovalOperation(t)); err != nil || wait != poll || !late.deleting {
		t.Errorf("comes back after %s, deleting %t, %v", wait, late.deleting, err)
	}

	for name, w := range map[string]*removalFixture{"gone": {}, "another runtime's": newRemoval("another", nil)} {
		if _, wait, err := run(t, w.options().verifyGone, newRemovalOperation(t)); err != nil || wait != 0 || w.deleting {
			t.Errorf("%s: comes back after %s, deleting %t, %v", name, wait, w.deleting, err)
		}
	}
}

// carryRemoval runs a removal as the engine does: an interrupted stage starts again with the stored data.
func carryRemoval(t *testing.T, w *removalFixture, whole process.Process[operation.Data]) {
	t.Helper()

	const enough = 10

	for _, stage := range whole.Stages {
		for try := 1; ; try++ {
			if try > enough {
				t.Fatalf("stage %s does not end: %v", stage.Name, w.calls)
			}

			_, wait, err := run(t, stage.Steps[0].Step.Run, newRemovalOperation(t))
			if err != nil && !failure.Is(err, failure.Transient) {
				t.Fatalf("stage %s: %v", stage.Name, err)
			}

			if err == nil && wait == 0 {
				break
			}
		}
	}
}

// TestNoCrashLeavesACluster has each call of a removal go wrong in turn: before it arrives, or with its answer lost.
func TestNoCrashLeavesACluster(t *testing.T) {
	begin := func(owner string) *removalFixture {
		w := newRemoval(owner, func(s *gardencorev1beta1.Shoot) {
			s.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateFailed}
		})
		w.looks = 2

		return w
	}

	for owner, wantLeft := range map[string]bool{runtimeID: false, "runtime-2": true} {
		whole := begin(owner)
		carryRemoval(t, whole, whole.process())

		for broken := range len(whole.calls) + 1 {
			for _, unsent := range []bool{true, false} {
				w := begin(owner)
				w.broken, w.unsent = broken, unsent

				carryRemoval(t, w, w.process())

				story := fmt.Sprintf("cluster of %s, call %d of %v goes wrong, unsent %t: %v", owner, broken, whole.calls, unsent, w.calls)

				if left := w.shoot != nil; left != wantLeft {
					t.Errorf("%s: left is %t", story, left)
				}

				if !w.deletedAt.Equal(now) {
					t.Errorf("%s: the name is not free: deleted at %s", story, w.deletedAt)
				}
			}
		}
	}
}
