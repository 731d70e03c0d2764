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

// blockingFinalizer blocks the deletion of a Shoot until the test removes it.
const blockingFinalizer = "example.com/held"

// TestFailedCreationIsRetried makes Gardener fail permanently to create a cluster. Once the cause is removed, an operator
// retries the operation, which creates the same cluster.
func TestFailedCreationIsRetried(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := start(t, database, 200*time.Millisecond)
		e.faults(map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultQuota)})

		failed := e.Create("retried", harness.PlanAWS)
		e.WantFailed("retried", "quota")

		runtime, shoot := e.runtime("retried"), e.shoots()[0]

		if text := e.ebctl("operation", "explain", failed); !strings.Contains(text, "ebctl operation retry "+failed) {
			t.Errorf("the explanation does not suggest a retry:\n%s", text)
		}

		// While the cause persists, a retry fails like the first attempt.
		e.Send(http.MethodPost, "/operations/"+failed+"/retry", reason("too early"), http.StatusAccepted)
		e.WantFailed("retried", "quota")

		e.faults(nil)
		e.Send(http.MethodPost, "/operations/"+failed+"/retry", reason("not the latest operation"), http.StatusConflict)

		again := e.lastOperation("retried")
		retry := e.interveneAndWait("retry", again, "the quota was raised")

		if retry.PredecessorID != again || retry.State != "succeeded" {
			t.Errorf("%s retries %s and is %s", retry.ID, retry.PredecessorID, retry.State)
		}

		e.WantSucceeded("retried")
		e.Send(http.MethodGet, harness.InstancePath("retried"), nil, http.StatusOK)
		e.Send(http.MethodPut, harness.InstancePath("retried")+harness.Incomplete, harness.Order(harness.PlanAWS), http.StatusOK)

		if shoots := e.shoots(); len(shoots) != 1 || shoots[0].UID != shoot.UID || e.runtime("retried").RuntimeID != runtime.RuntimeID {
			t.Errorf("the retry created another runtime: %d Shoots, %s and then %s",
				len(shoots), runtime.RuntimeID, e.runtime("retried").RuntimeID)
		}

		harness.WantRuntimeResponds(t, "the administrator's kubeconfig", e.kubeconfig("retried"))
		e.Delete("retried", harness.PlanAWS)
		e.WantGone("retried")

		if shoots := e.shoots(); len(shoots) != 0 {
			t.Errorf("%d Shoots remain", len(shoots))
		}
	})
}

// TestCanceledCreationIsRetried checks that the retry of a canceled creation uses the cluster that Gardener was creating at the
// cancellation.
func TestCanceledCreationIsRetried(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 200*time.Millisecond)
	e.faults(harness.StuckClusters())

	operation := e.Create("canceled", harness.PlanAWS)
	e.Until("the Shoot", func() bool { return len(e.shoots()) == 1 })
	e.intervene("cancel", operation, "the owner is unknown")
	e.WantFailed("canceled", "canceled")

	retry := e.intervene("retry", operation, "the owner was found")
	e.faults(nil)
	e.WantSucceeded("canceled")

	if shoots := e.shoots(); len(shoots) != 1 || e.lastOperation("canceled") != retry.ID {
		t.Errorf("the retry %s is not the latest operation, or %d Shoots exist instead of one", retry.ID, len(shoots))
	}

	e.Delete("canceled", harness.PlanAWS)
	e.WantGone("canceled")
}

// TestRetryUsesTheCorrectedTargetSecret orders a runtime with credentials that do not exist in Gardener, and restarts the broker
// with a corrected configuration. The retry must succeed.
func TestRetryUsesTheCorrectedTargetSecret(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 200*time.Millisecond, func(settings *broker.Config, _ *provisioner.Config) {
		settings.TargetSecrets = map[string]string{"aws": "nosuch"}
	})

	failed := e.Create("corrected", harness.PlanAWS)
	e.WantFailed("corrected", "Gardener rejects the credentials binding")
	e.restartWith("aws", "aws")
	e.interveneAndWait("retry", failed, "the configuration was corrected")
	e.WantSucceeded("corrected")

	if shoots := e.shoots(); len(shoots) != 1 || *shoots[0].Spec.CredentialsBindingName != "aws" {
		t.Errorf("the retry left %d Shoots with the credentials %+v", len(shoots), shoots)
	}
}

// TestRetryFindsTheRuntimeOfTheFormerTargetSecret changes the broker's credentials after the cancellation of a creation, while
// Gardener still creates the runtime. The retry must continue with this runtime and its former credentials, and the deletion must
// remove the runtime.
func TestRetryFindsTheRuntimeOfTheFormerTargetSecret(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 200*time.Millisecond)
	e.faults(harness.StuckClusters())

	operation := e.Create("running", harness.PlanAWS)
	e.Until("the Shoot", func() bool { return len(e.shoots()) == 1 })
	e.intervene("cancel", operation, "the configuration is to change")
	e.WantFailed("running", "canceled")

	e.restartWith("aws", "another")
	e.intervene("retry", operation, "the configuration has changed")
	e.faults(nil)
	e.WantSucceeded("running")

	if shoots := e.shoots(); len(shoots) != 1 || *shoots[0].Spec.CredentialsBindingName != "aws" {
		t.Errorf("the retry left %d Shoots with the credentials %+v", len(shoots), shoots)
	}

	e.Delete("running", harness.PlanAWS)
	e.WantGone("running")
}

func (e *env) restartWith(provider, secret string) {
	e.Helper()
	e.services.Settings.TargetSecrets = map[string]string{provider: secret}
	e.services.Broker.Stop()
	e.startBroker()
}

// TestDeletionDuringARetry checks that the deletion of an instance cancels a running retry of its creation and leaves no Shoot.
func TestDeletionDuringARetry(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 200*time.Millisecond)
	e.faults(map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultQuota)})

	operation := e.Create("unwanted", harness.PlanAWS)
	e.WantFailed("unwanted", "quota")
	e.faults(harness.StuckClusters())

	retry := e.intervene("retry", operation, "the quota was raised")
	// The explanation shows Gardener's progress up to a minute late. The Shoot shows earlier that Gardener works on the retry.
	e.Until("the retry to wait for Gardener", func() bool {
		shoots := e.shoots()

		return len(shoots) == 1 && shoots[0].Status.LastOperation.State == gardencorev1beta1.LastOperationStateProcessing &&
			strings.Contains(e.ebctl("operation", "explain", retry.ID), "the Provisioner is working on it")
	})
	e.Delete("unwanted", harness.PlanAWS)
	e.WantGone("unwanted")

	if shoots := e.shoots(); len(shoots) != 0 {
		t.Errorf("%d Shoots remain", len(shoots))
	}

	if text := e.ebctl("operation", "get", retry.ID); !strings.Contains(text, "canceled") {
		t.Errorf("the retry was not canceled:\n%s", text)
	}
}

// TestFailedDeletionIsRetried checks a deletion that fails because Gardener takes longer than the time limit. An operator's retry
// must succeed once Gardener has deleted the cluster.
func TestFailedDeletionIsRetried(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 100*time.Millisecond, func(_ *broker.Config, settings *provisioner.Config) {
		settings.DeprovisioningTimeout.WaitingForClusterDeletion = time.Second
	})

	e.Create("kept", harness.PlanAWS)
	e.WantSucceeded("kept")
	e.changeShoot(func(shoot *gardencorev1beta1.Shoot) { shoot.Finalizers = append(shoot.Finalizers, blockingFinalizer) })

	operation := e.Delete("kept", harness.PlanAWS)
	e.WantFailed("kept", "did not finish in time")
	e.Send(http.MethodPut, harness.InstancePath("kept")+harness.Incomplete, harness.Order(harness.PlanAWS), http.StatusConflict)

	e.changeShoot(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Finalizers = slices.DeleteFunc(shoot.Finalizers, func(each string) bool { return each == blockingFinalizer })
	})
	e.Until("the Shoot to be deleted", func() bool { return len(e.shoots()) == 0 }) // the retry has the same short time limit

	if retry := e.interveneAndWait("retry", operation, "the volume was deleted"); retry.State != "succeeded" {
		t.Errorf("the retry is %s: %+v", retry.State, retry.Problem)
	}

	e.WantGone("kept")

	if shoots := e.shoots(); len(shoots) != 0 {
		t.Errorf("%d Shoots remain", len(shoots))
	}

	e.Send(http.MethodPost, "/operations/"+operation+"/retry", reason("once more"), http.StatusConflict)
}

// TestStuckDeletionEndsWithSkippedStep checks that the deletion of an instance can end while the Provisioner is unavailable: an
// operator deletes the cluster manually and skips the step that calls the Provisioner. The Provisioner's runtime is then left over,
// and a cleanup removes it when the Provisioner is available again.
func TestStuckDeletionEndsWithSkippedStep(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 100*time.Millisecond)

	e.Create("stuck", harness.PlanAWS)
	e.WantSucceeded("stuck")

	reconnect := e.services.Proxy.Inject(harness.Match{}, harness.Disconnect)
	defer reconnect()

	operation := e.Delete("stuck", harness.PlanAWS)

	e.Until("advice to skip", func() bool {
		return strings.Contains(e.ebctl("operation", "explain", operation), "ebctl operation skip "+operation)
	})

	e.changeShoot(func(shoot *gardencorev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, "confirmation.gardener.cloud/deletion", "true")
	})

	if err := e.services.Garden.Client().Delete(t.Context(), &e.shoots()[0]); err != nil {
		t.Fatal(err)
	}

	skipped := e.interveneAndWait("skip", operation, "the cluster was deleted manually")
	if !slices.Equal(skipped.SkippedSteps, []string{"Remove_Runtime"}) || skipped.State != "succeeded" {
		t.Errorf("the deletion is %s, with the skipped steps %v", skipped.State, skipped.SkippedSteps)
	}

	e.WantGone("stuck")
	e.Send(http.MethodGet, harness.InstancePath("stuck"), nil, http.StatusNotFound)

	if left := e.ebctl("instance", "list", "--leftovers"); !strings.Contains(left, operation) || !strings.Contains(left, "Remove_Runtime") {
		t.Errorf("the list of leftovers is %s", left)
	}

	reconnect()
	e.ebctl("leftover", "cleanup", "stuck", "--reason", "the Provisioner is back")
	e.Until("the leftover to be cleaned up", func() bool {
		return strings.Contains(e.ebctl("instance", "list", "--leftovers"), "Nothing is left over")
	})

	if kept := e.ebctl("operation", "list", "--kind", "cleanup", "--state", "succeeded"); !strings.Contains(kept, "stuck") {
		t.Errorf("the list of cleanups is %s", kept)
	}
}

// TestOperationsCanceledWhilePendingAreCounted checks that the metric of ended operations includes operations that were canceled
// before they started. The broker of the test never starts operations.
func TestOperationsCanceledWhilePendingAreCounted(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 0, func(settings *broker.Config, _ *provisioner.Config) { settings.Engine.Workers = 0 })
	e.Create("deleted", harness.PlanAWS)
	e.Delete("deleted", harness.PlanAWS)
	e.Send(http.MethodPost, "/operations/"+e.Create("canceled", harness.PlanAWS)+"/cancel", reason("not needed"), http.StatusAccepted)

	const ended = "environment_broker_engine_operations_ended_total"

	if err := testutil.GatherAndCompare(e.services.Broker.Metrics, strings.NewReader(`
# HELP `+ended+` Operations that ended, by kind and state: succeeded, failed, canceled.
# TYPE `+ended+` counter
`+ended+`{kind="provision",state="canceled"} 2
`), ended); err != nil {
		t.Error(err)
	}
}
