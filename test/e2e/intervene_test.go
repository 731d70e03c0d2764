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
)

// holding keeps a Shoot that is deleted from going.
const holding = "example.com/held"

// TestFailedCreationIsRetried has Gardener give up a cluster for good. Once the cause is gone, an operator's retry makes that same
// cluster, and the instance is as good as any.
func TestFailedCreationIsRetried(t *testing.T) {
	t.Parallel()

	eachDatabase(t, func(t *testing.T, fresh database) {
		l := start(t, fresh, 200*time.Millisecond, nil)
		l.faults(map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultQuota)})

		failed := l.create("retried", planAWS)
		l.failed("retried", "quota")

		runtime, shoot := l.runtime("retried"), l.shoots()[0]

		if told := l.ebctl("operation", "explain", failed); !strings.Contains(told, "ebctl operation retry "+failed) {
			t.Errorf("it is not told that it can be retried:\n%s", told)
		}

		// While the cause is there, a retry fails like the first try.
		l.send(http.MethodPost, "/operations/"+failed+"/retry", reason("too early"), http.StatusAccepted)
		l.failed("retried", "quota")

		l.faults(nil)
		l.send(http.MethodPost, "/operations/"+failed+"/retry", reason("not the last one"), http.StatusConflict)

		again := l.lastOperation("retried")
		retry := l.intervened("retry", again, "the quota was raised")

		if retry.PredecessorID != again || retry.State != "succeeded" {
			t.Errorf("%s retries %s and ended as %s", retry.ID, retry.PredecessorID, retry.State)
		}

		l.succeeded("retried")
		l.send(http.MethodGet, instancePath("retried"), nil, http.StatusOK)
		l.send(http.MethodPut, instancePath("retried")+"?accepts_incomplete=true", orderOf(planAWS), http.StatusOK)

		if shoots := l.shoots(); len(shoots) != 1 || shoots[0].UID != shoot.UID || l.runtime("retried").RuntimeID != runtime.RuntimeID {
			t.Errorf("the retry made another runtime: %d Shoots, %s and then %s",
				len(shoots), runtime.RuntimeID, l.runtime("retried").RuntimeID)
		}

		answersTo(t, l.kubeconfig("retried"))
		l.remove("retried", planAWS)
		l.gone("retried")

		if shoots := l.shoots(); len(shoots) != 0 {
			t.Errorf("%d Shoots are left", len(shoots))
		}
	})
}

// TestCanceledCreationIsRetried has an operator cancel a creation while its cluster is being made, and change their mind.
func TestCanceledCreationIsRetried(t *testing.T) {
	t.Parallel()

	l := start(t, onSQLite, 200*time.Millisecond, nil)
	l.faults(stuck())

	operation := l.create("canceled", planAWS)
	l.until("the Shoot", func() bool { return len(l.shoots()) == 1 })
	l.intervene("cancel", operation, "nobody knows who wants it")
	l.failed("canceled", "canceled")

	retry := l.intervene("retry", operation, "somebody wants it")
	l.faults(nil)
	l.succeeded("canceled")

	if shoots := l.shoots(); len(shoots) != 1 || l.lastOperation("canceled") != retry.ID {
		t.Errorf("the retry %s is not the last operation, or there are %d Shoots", retry.ID, len(shoots))
	}

	l.remove("canceled", planAWS)
	l.gone("canceled")
}

// TestDeletionDuringARetry removes what both the creation that failed and its retry have begun.
func TestDeletionDuringARetry(t *testing.T) {
	t.Parallel()

	l := start(t, onSQLite, 200*time.Millisecond, nil)
	l.faults(map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultQuota)})

	operation := l.create("unwanted", planAWS)
	l.failed("unwanted", "quota")
	l.faults(stuck())

	retry := l.intervene("retry", operation, "the quota was raised")
	l.until("the retry to wait", func() bool { return strings.Contains(l.ebctl("operation", "explain", retry.ID), "Gardener is at") })
	l.remove("unwanted", planAWS)
	l.gone("unwanted")

	if shoots := l.shoots(); len(shoots) != 0 {
		t.Errorf("%d Shoots are left", len(shoots))
	}

	if told := l.ebctl("operation", "get", retry.ID); !strings.Contains(told, "canceled") {
		t.Errorf("the retry was not canceled:\n%s", told)
	}
}

// TestFailedDeletionIsRetried has a cluster that Gardener does not get rid of in time. The retry waits for it anew.
func TestFailedDeletionIsRetried(t *testing.T) {
	t.Parallel()

	l := start(t, onSQLite, 100*time.Millisecond, nil, func(settings *provisioner.Config) {
		settings.DeprovisioningTimeout.WaitingForClusterDeletion = time.Second
	})

	l.create("kept", planAWS)
	l.succeeded("kept")
	l.changeShoot(func(shoot *gardencorev1beta1.Shoot) { shoot.Finalizers = append(shoot.Finalizers, holding) })

	operation := l.remove("kept", planAWS)
	l.failed("kept", "not done within")
	l.send(http.MethodPut, instancePath("kept")+"?accepts_incomplete=true", orderOf(planAWS), http.StatusConflict)

	l.changeShoot(func(shoot *gardencorev1beta1.Shoot) {
		shoot.Finalizers = slices.DeleteFunc(shoot.Finalizers, func(each string) bool { return each == holding })
	})
	l.until("the Shoot to go", func() bool { return len(l.shoots()) == 0 }) // the retry waits no longer than the first try

	if retry := l.intervened("retry", operation, "the volume that held it is gone"); retry.State != "succeeded" {
		t.Errorf("the retry ended as %s: %+v", retry.State, retry.Problem)
	}

	l.gone("kept")

	if shoots := l.shoots(); len(shoots) != 0 {
		t.Errorf("%d Shoots are left", len(shoots))
	}

	l.send(http.MethodPost, "/operations/"+operation+"/retry", reason("once more"), http.StatusConflict)
}

// TestStepOfAStuckDeletionIsSkipped has a deletion that waits for a Provisioner that is gone. Its cluster is removed by hand.
func TestStepOfAStuckDeletionIsSkipped(t *testing.T) {
	t.Parallel()

	road := &road{}
	l := start(t, onSQLite, 100*time.Millisecond, road.detour(t))

	l.create("stuck", planAWS)
	l.succeeded("stuck")

	broken := trouble(down)
	road.broken.Store(&broken)

	operation := l.remove("stuck", planAWS)

	l.until("advice to skip", func() bool {
		return strings.Contains(l.ebctl("operation", "explain", operation), "ebctl operation skip "+operation)
	})

	l.changeShoot(func(shoot *gardencorev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, "confirmation.gardener.cloud/deletion", "true")
	})

	if err := l.garden.Client().Delete(t.Context(), &l.shoots()[0]); err != nil {
		t.Fatal(err)
	}

	skipped := l.intervened("skip", operation, "the cluster was removed by hand")
	if !slices.Equal(skipped.SkippedSteps, []string{"Remove_Runtime"}) || skipped.State != "succeeded" {
		t.Errorf("it ended as %s, without the steps %v", skipped.State, skipped.SkippedSteps)
	}

	l.gone("stuck")
	l.send(http.MethodGet, instancePath("stuck"), nil, http.StatusNotFound)
}

// TestWhatIsCanceledBeforeItsTurnIsCounted has a broker whose operations never get their turn.
func TestWhatIsCanceledBeforeItsTurnIsCounted(t *testing.T) {
	t.Parallel()

	l := startWith(t, onSQLite, 0, nil, func(settings *broker.Config, _ *provisioner.Config) { settings.Engine.Workers = 0 })
	l.create("deleted", planAWS)
	l.remove("deleted", planAWS)
	l.send(http.MethodPost, "/operations/"+l.create("canceled", planAWS)+"/cancel", reason("nobody wants it"), http.StatusAccepted)

	const ended = "environment_broker_engine_operations_ended_total"

	if err := testutil.GatherAndCompare(l.metrics, strings.NewReader(`
# HELP `+ended+` Operations that ended, by state: succeeded, failed, canceled.
# TYPE `+ended+` counter
`+ended+`{kind="provision",state="canceled"} 2
`), ended); err != nil {
		t.Error(err)
	}
}
