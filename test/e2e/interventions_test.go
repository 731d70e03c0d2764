package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// holding is a finalizer that blocks the deletion of a Shoot.
const holding = "example.com/held"

// TestFailedCreationIsRetried lets Gardener fail to create a cluster permanently. After the cause is removed, an operator's retry creates
// the same cluster.
func TestFailedCreationIsRetried(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, fresh harness.Database) {
		l := start(t, fresh, 200*time.Millisecond)
		l.faults(map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultQuota)})

		failed := l.Create("retried", harness.PlanAWS)
		l.WantFailed("retried", "quota")

		runtime, shoot := l.runtime("retried"), l.shoots()[0]

		if text := l.ebctl("operation", "explain", failed); !strings.Contains(text, "ebctl operation retry "+failed) {
			t.Errorf("the explanation does not suggest a retry:\n%s", text)
		}

		// While the cause remains, a retry fails like the first attempt.
		l.Send(http.MethodPost, "/operations/"+failed+"/retry", reason("too early"), http.StatusAccepted)
		l.WantFailed("retried", "quota")

		l.faults(nil)
		l.Send(http.MethodPost, "/operations/"+failed+"/retry", reason("not the latest operation"), http.StatusConflict)

		again := l.lastOperation("retried")
		retry := l.interveneAndWait("retry", again, "the quota was raised")

		if retry.PredecessorID != again || retry.State != "succeeded" {
			t.Errorf("%s retries %s and is %s", retry.ID, retry.PredecessorID, retry.State)
		}

		l.WantSucceeded("retried")
		l.Send(http.MethodGet, harness.InstancePath("retried"), nil, http.StatusOK)
		l.Send(http.MethodPut, harness.InstancePath("retried")+harness.Incomplete, harness.Order(harness.PlanAWS), http.StatusOK)

		if shoots := l.shoots(); len(shoots) != 1 || shoots[0].UID != shoot.UID || l.runtime("retried").RuntimeID != runtime.RuntimeID {
			t.Errorf("the retry created another runtime: %d Shoots, %s and then %s",
				len(shoots), runtime.RuntimeID, l.runtime("retried").RuntimeID)
		}

		wantRuntimeAnswers(t, l.kubeconfig("retried"))
		l.Delete("retried", harness.PlanAWS)
		l.WantGone("retried")

		if shoots := l.shoots(); len(shoots) != 0 {
			t.Errorf("%d Shoots remain", len(shoots))
		}
	})
}

// TestCanceledCreationIsRetried cancels a creation while its cluster is being created, and retries it.
func TestCanceledCreationIsRetried(t *testing.T) {
	t.Parallel()

	l := start(t, harness.SQLite, 200*time.Millisecond)
	l.faults(stuck())

	operation := l.Create("canceled", harness.PlanAWS)
	l.Until("the Shoot", func() bool { return len(l.shoots()) == 1 })
	l.intervene("cancel", operation, "the owner is unknown")
	l.WantFailed("canceled", "canceled")

	retry := l.intervene("retry", operation, "the owner was found")
	l.faults(nil)
	l.WantSucceeded("canceled")

	if shoots := l.shoots(); len(shoots) != 1 || l.lastOperation("canceled") != retry.ID {
		t.Errorf("the retry %s is not the latest operation, or %d Shoots exist instead of one", retry.ID, len(shoots))
	}

	l.Delete("canceled", harness.PlanAWS)
	l.WantGone("canceled")
}

// TestDeletionDuringARetry deletes an instance whose failed creation is being retried.
func TestDeletionDuringARetry(t *testing.T) {
	t.Parallel()

	l := start(t, harness.SQLite, 200*time.Millisecond)
	l.faults(map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultQuota)})

	operation := l.Create("unwanted", harness.PlanAWS)
	l.WantFailed("unwanted", "quota")
	l.faults(stuck())

	retry := l.intervene("retry", operation, "the quota was raised")
	// Gardener's percentage may reach the explanation a minute after earlier progress, so the Shoot shows that Gardener works on the retry.
	l.Until("the retry to wait for Gardener", func() bool {
		shoots := l.shoots()

		return len(shoots) == 1 && shoots[0].Status.LastOperation.State == gardencorev1beta1.LastOperationStateProcessing &&
			strings.Contains(l.ebctl("operation", "explain", retry.ID), "the Provisioner is working on it")
	})
	l.Delete("unwanted", harness.PlanAWS)
	l.WantGone("unwanted")

	if shoots := l.shoots(); len(shoots) != 0 {
		t.Errorf("%d Shoots remain", len(shoots))
	}

	if text := l.ebctl("operation", "get", retry.ID); !strings.Contains(text, "canceled") {
		t.Errorf("the retry was not canceled:\n%s", text)
	}
}

// TestFailedDeletionIsRetried deletes a cluster that Gardener does not delete in time. The retry waits for it again.
func TestFailedDeletionIsRetried(t *testing.T) {
	t.Parallel()

	l := start(t, harness.SQLite, 100*time.Millisecond, func(_ *broker.Config, settings *provisioner.Config) {
		settings.DeprovisioningTimeout.WaitingForClusterDeletion = time.Second
	})

	l.Create("kept", harness.PlanAWS)
	l.WantSucceeded("kept")
	l.changeShoot(func(shoot *gardencorev1beta1.Shoot) { shoot.Finalizers = append(shoot.Finalizers, holding) })

	operation := l.Delete("kept", harness.PlanAWS)
	l.WantFailed("kept", "not done within")
	l.Send(http.MethodPut, harness.InstancePath("kept")+harness.Incomplete, harness.Order(harness.PlanAWS), http.StatusConflict)

	l.changeShoot(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Finalizers = slices.DeleteFunc(shoot.Finalizers, func(each string) bool { return each == holding })
	})
	l.Until("the Shoot to be deleted", func() bool { return len(l.shoots()) == 0 }) // the retry has the same time limit as the first attempt

	if retry := l.interveneAndWait("retry", operation, "the volume was deleted"); retry.State != "succeeded" {
		t.Errorf("the retry is %s: %+v", retry.State, retry.Problem)
	}

	l.WantGone("kept")

	if shoots := l.shoots(); len(shoots) != 0 {
		t.Errorf("%d Shoots remain", len(shoots))
	}

	l.Send(http.MethodPost, "/operations/"+operation+"/retry", reason("once more"), http.StatusConflict)
}

// TestStuckDeletionEndsWithSkippedStep deletes an instance while the Provisioner is unavailable. An operator deletes the cluster manually
// and skips the step.
func TestStuckDeletionEndsWithSkippedStep(t *testing.T) {
	t.Parallel()

	l := start(t, harness.SQLite, 100*time.Millisecond)

	l.Create("stuck", harness.PlanAWS)
	l.WantSucceeded("stuck")

	defer l.services.Proxy.Inject(harness.Match{}, harness.Disconnect)()

	operation := l.Delete("stuck", harness.PlanAWS)

	l.Until("advice to skip", func() bool {
		return strings.Contains(l.ebctl("operation", "explain", operation), "ebctl operation skip "+operation)
	})

	l.changeShoot(func(shoot *gardencorev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, "confirmation.gardener.cloud/deletion", "true")
	})

	if err := l.services.Garden.Client().Delete(t.Context(), &l.shoots()[0]); err != nil {
		t.Fatal(err)
	}

	skipped := l.interveneAndWait("skip", operation, "the cluster was deleted manually")
	if !slices.Equal(skipped.SkippedSteps, []string{"Remove_Runtime"}) || skipped.State != "succeeded" {
		t.Errorf("the deletion is %s, with the skipped steps %v", skipped.State, skipped.SkippedSteps)
	}

	l.WantGone("stuck")
	l.Send(http.MethodGet, harness.InstancePath("stuck"), nil, http.StatusNotFound)
}

// TestOperationsCanceledWhilePendingAreCounted cancels an operation of a broker that never starts its operations.
func TestOperationsCanceledWhilePendingAreCounted(t *testing.T) {
	t.Parallel()

	l := start(t, harness.SQLite, 0, func(settings *broker.Config, _ *provisioner.Config) { settings.Engine.Workers = 0 })
	l.Create("deleted", harness.PlanAWS)
	l.Delete("deleted", harness.PlanAWS)
	l.Send(http.MethodPost, "/operations/"+l.Create("canceled", harness.PlanAWS)+"/cancel", reason("not needed"), http.StatusAccepted)

	const ended = "environment_broker_engine_operations_ended_total"

	if err := testutil.GatherAndCompare(l.services.Broker.Metrics, strings.NewReader(`
# HELP `+ended+` Operations that ended, by state: succeeded, failed, canceled.
# TYPE `+ended+` counter
`+ended+`{kind="provision",state="canceled"} 2
`), ended); err != nil {
		t.Error(err)
	}
}
