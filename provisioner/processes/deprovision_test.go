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
		t.Errorf("running operations store the names of stages, -want +got:\n%s", diff)
	}
}

func TestDeleteShoot(t *testing.T) {
	f := newRemoval(runtimeID, nil)

	for range 2 {
		got, wait, err := run(t, f.options().deleteShoot, newRemovalOperation(t))
		if err != nil || wait != 0 || got.WaitingFor != operation.ShootEvent(shootName) || !f.deleting {
			t.Fatalf("got wait %s, event %q, %v", wait, got.WaitingFor, err)
		}
	}

	f.err = errLost
	if _, wait, err := run(t, f.options().deleteShoot, newRemovalOperation(t)); !failure.Is(err, failure.Transient) || wait != 0 {
		t.Errorf("Gardener is unavailable: got wait %s, %v", wait, err)
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
		fixture     *removalFixture
		overdue     bool
		wantWait    time.Duration
		wantKind    failure.Kind
		wantText    string
		wantRetries int // calls to Retry in two runs
	}{
		"gone":        {reason: "the Shoot does not exist", fixture: &removalFixture{}},
		"foreign":     {reason: "the Shoot belongs to another runtime, so our cluster is gone", fixture: newRemoval("runtime-2", nil)},
		"not started": {reason: "the deletion has not started", fixture: newRemoval(runtimeID, at(created, gardencorev1beta1.LastOperationStateSucceeded)), wantWait: poll},
		"in progress": {reason: "the deletion takes time", fixture: newRemoval(runtimeID, at(deleted, gardencorev1beta1.LastOperationStateProcessing)), wantWait: poll},
		"in error":    {reason: "Gardener retries by itself", fixture: newRemoval(runtimeID, at(deleted, gardencorev1beta1.LastOperationStateError)), wantWait: poll},
		"temporary failure": {
			reason: "Gardener is asked to retry", fixture: newRemoval(runtimeID, at(deleted, failed, gardencorev1beta1.ErrorInfraRateLimitsExceeded)),
			wantWait: poll, wantRetries: 2,
		},
		"permanent failure": {
			reason:  "a leaked cluster costs money, so Gardener is asked to retry anyway",
			fixture: newRemoval(runtimeID, at(deleted, failed, gardencorev1beta1.ErrorCleanupClusterResources)), wantWait: poll, wantRetries: 2,
		},
		"not gone in time": {
			reason: "the error names the cause and the advice for operators", overdue: true, wantRetries: 2,
			fixture:  newRemoval(runtimeID, at(deleted, failed, gardencorev1beta1.ErrorCleanupClusterResources)),
			wantKind: failure.Permanent, wantText: "out of luck (ERR_CLEANUP_CLUSTER_RESOURCES: objects in the cluster cannot be deleted",
		},
		"gone at the last moment": {reason: "a finished deletion is never overdue", overdue: true, fixture: &removalFixture{}},
		"unavailable":             {reason: "a Shoot that cannot be read is not gone", fixture: &removalFixture{faults: faults{err: errLost}}, wantKind: failure.Transient, wantText: "lost"},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := c.fixture.options()
			if c.overdue {
				options.Timeouts.Deletion = 0
			}

			for range 2 {
				op := newRemovalOperation(t)
				op.WaitingFor = operation.ShootEvent(shootName)

				got, wait, err := run(t, options.waitForDeletion, op)
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

			if c.fixture.retried != c.wantRetries {
				t.Errorf("%s: Gardener was asked to retry %d times, want %d", c.reason, c.fixture.retried, c.wantRetries)
			}
		})
	}
}

// TestShootThatAppearsDuringTheWaitIsDeleted simulates a frozen replica that creates the Shoot again after its deletion.
func TestShootThatAppearsDuringTheWaitIsDeleted(t *testing.T) {
	f := newRemoval(runtimeID, nil)
	step := f.options().waitForDeletion

	if _, wait, err := run(t, step, newRemovalOperation(t)); err != nil || wait != poll || !f.deleting {
		t.Errorf("got wait %s, deleting %t, %v", wait, f.deleting, err)
	}

	if _, wait, err := run(t, step, newRemovalOperation(t)); err != nil || wait != 0 || f.shoot != nil {
		t.Errorf("then got wait %s, %v", wait, err)
	}

	f = newRemoval(runtimeID, nil)
	f.failing, f.unsent = 2, true

	if _, _, err := run(t, f.options().waitForDeletion, newRemovalOperation(t)); !failure.Is(err, failure.Transient) {
		t.Errorf("a lost deletion: the step ends with %v", err)
	}
}

func TestMarkDeleted(t *testing.T) {
	f := newRemoval(runtimeID, nil)

	for later := range 2 {
		op := newRemovalOperation(t)
		op = process.NewOperation(op.Record, op.Data, now.Add(time.Duration(later)*time.Hour))

		if _, wait, err := run(t, f.options().markDeleted, op); err != nil || wait != 0 || !f.deletedAt.Equal(now) {
			t.Errorf("got wait %s, deleted at %s, %v", wait, f.deletedAt, err)
		}
	}

	f.err = fmt.Errorf("the database is unavailable")

	_, _, err := run(t, f.options().markDeleted, newRemovalOperation(t))
	if !failure.Is(err, failure.Transient) || failure.Of(err).Component != failure.ComponentProvisionerStorage {
		t.Errorf("the database is unavailable: got %v", err)
	}
}

func TestShootThatAppearsLateIsDeleted(t *testing.T) {
	late := newRemoval(runtimeID, nil)
	step := late.options().verifyGone

	if _, wait, err := run(t, step, newRemovalOperation(t)); err != nil || wait != poll || !late.deleting {
		t.Errorf("got wait %s, deleting %t, %v", wait, late.deleting, err)
	}

	for name, f := range map[string]*removalFixture{"gone": {}, "another runtime's": newRemoval("another", nil)} {
		if _, wait, err := run(t, f.options().verifyGone, newRemovalOperation(t)); err != nil || wait != 0 || f.deleting {
			t.Errorf("%s: got wait %s, deleting %t, %v", name, wait, f.deleting, err)
		}
	}
}

// runRemovalToEnd runs a removal as the engine does: after a transient error it repeats the stage with the stored data.
func runRemovalToEnd(t *testing.T, f *removalFixture, whole process.Process[operation.Data]) {
	t.Helper()

	const maxTries = 10

	for _, stage := range whole.Stages {
		for try := 1; ; try++ {
			if try > maxTries {
				t.Fatalf("stage %s does not end: %v", stage.Name, f.calls)
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

// TestNoFaultLeavesACluster injects a fault into each call that a removal makes, one at a time: either the call or its response
// is lost. After every fault the removal must delete its own cluster, and no cluster of another runtime.
func TestNoFaultLeavesACluster(t *testing.T) {
	newFixture := func(owner string) *removalFixture {
		f := newRemoval(owner, func(s *gardencorev1beta1.Shoot) {
			s.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateFailed}
		})
		f.reads = 2

		return f
	}

	for owner, wantLeft := range map[string]bool{runtimeID: false, "runtime-2": true} {
		whole := newFixture(owner)
		runRemovalToEnd(t, whole, whole.process())

		for failing := range len(whole.calls) + 1 {
			for _, unsent := range []bool{true, false} {
				f := newFixture(owner)
				f.failing, f.unsent = failing, unsent

				runRemovalToEnd(t, f, f.process())

				scenario := fmt.Sprintf("cluster of %q, call %d of %v fails, unsent %t: %v", owner, failing, whole.calls, unsent, f.calls)

				if left := f.shoot != nil; left != wantLeft {
					t.Errorf("%s: the cluster exists: %t", scenario, left)
				}

				if !f.deletedAt.Equal(now) {
					t.Errorf("%s: the name is not free: deleted at %s", scenario, f.deletedAt)
				}
			}
		}
	}
}
