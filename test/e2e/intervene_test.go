package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/ebctl"
	"github.com/environment-broker/environment-broker/internal/ebctl/progress"
	"github.com/environment-broker/environment-broker/internal/garden/gardenlet"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
)

// holding keeps a Shoot that is deleted from going.
const holding = "example.com/held"

// TestFailedCreationIsRetried has Gardener give up a cluster for good. Once the cause is gone, an operator's retry makes that same
// cluster, and the instance is as good as any.
func TestFailedCreationIsRetried(t *testing.T) {
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
	l := start(t, onSQLite, 200*time.Millisecond, nil)
	l.faults(map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultStuck)})

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

// TestFailedDeletionIsRetried has a cluster that Gardener does not get rid of in time. The retry waits for it anew.
func TestFailedDeletionIsRetried(t *testing.T) {
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
	road := &road{}
	l := start(t, onSQLite, 100*time.Millisecond, func(provisioner string) string {
		target, err := url.Parse(provisioner)
		if err != nil {
			t.Fatal(err)
		}

		road.target = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
		server := httptest.NewServer(road)
		t.Cleanup(server.Close)

		return server.URL + target.Path
	})

	l.create("stuck", planAWS)
	l.succeeded("stuck")

	broken := trouble(down)
	road.broken.Store(&broken)

	operation := l.remove("stuck", planAWS)

	l.until("advice to skip", func() bool {
		return strings.Contains(l.ebctl("operation", "explain", operation), "ebctl operation skip "+operation)
	})

	shoot := l.shoots()[0]
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, "confirmation.gardener.cloud/deletion", "true")

	if err := l.garden.Client().Update(t.Context(), &shoot); err != nil {
		t.Fatal(err)
	}

	if err := l.garden.Client().Delete(t.Context(), &shoot); err != nil {
		t.Fatal(err)
	}

	skipped := l.intervened("skip", operation, "the cluster was removed by hand")
	if !slices.Equal(skipped.SkippedSteps, []string{"Remove_Runtime"}) || skipped.State != "succeeded" {
		t.Errorf("it ended as %s, without the steps %v", skipped.State, skipped.SkippedSteps)
	}

	l.gone("stuck")
	l.send(http.MethodGet, instancePath("stuck"), nil, http.StatusNotFound)
}

// faults orders what goes wrong with clusters.
func (l landscape) faults(orders map[string]string) {
	l.Helper()

	order := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.garden.Namespace(), Name: gardenlet.FaultsConfigMap}}

	err := client.IgnoreNotFound(l.garden.Client().Delete(context.Background(), order.DeepCopy()))
	if err == nil {
		order.Data = orders
		err = l.garden.Client().Create(context.Background(), order)
	}

	if err != nil {
		l.Fatal(err)
	}
}

// changeShoot changes the only Shoot. Who else changes it meanwhile is let pass first.
func (l landscape) changeShoot(change func(*gardencorev1beta1.Shoot)) {
	l.Helper()

	l.until("the Shoot to be changed", func() bool {
		shoot := l.shoots()[0]
		change(&shoot)

		return l.garden.Client().Update(context.Background(), &shoot) == nil
	})
}

// failed polls until the instance's operation has failed for the reason.
func (p platform) failed(id, why string) {
	p.Helper()

	last := p.poll(id, func(got answer) bool { return got.text("state") != "in progress" })
	if last.text("state") != "failed" || !strings.Contains(last.text("description"), why) {
		p.Fatalf("the operation on %s ended with %d %v, want that it failed: %s", id, last.Status, last.Body, why)
	}
}

// runtime is what the operator API tells of an instance.
func (p platform) runtime(id string) operatorapi.Runtime {
	p.Helper()

	var list operatorapi.RuntimeList

	p.decode(p.ebctl("instance", "list", "-o", "json"), &list)

	for _, runtime := range list.Data {
		if runtime.InstanceID == id {
			return runtime
		}
	}

	p.Fatalf("there is no instance %s", id)

	return operatorapi.Runtime{}
}

func (p platform) lastOperation(id string) string {
	p.Helper()

	return p.runtime(id).Status.LastOperation.ID
}

func reason(why string) operatorapi.Intervention { return operatorapi.Intervention{Reason: why} }

// intervene is `ebctl operation cancel`, retry or skip.
func (p platform) intervene(verb, operation, why string, flags ...string) operatorapi.Operation {
	p.Helper()

	var told operatorapi.Operation

	p.decode(p.ebctl(append([]string{"operation", verb, operation, "--reason", why, "-o", "json"}, flags...)...), &told)

	return told
}

// intervened is intervene, and waits for the end.
func (p platform) intervened(verb, operation, why string) operatorapi.Operation {
	p.Helper()

	return p.intervene(verb, operation, why, "--wait")
}

func (p platform) decode(text string, into any) {
	p.Helper()

	if err := json.Unmarshal([]byte(text), into); err != nil {
		p.Fatalf("decoding %s: %v", text, err)
	}
}

// ebctl runs the tool and returns what it prints.
func (p platform) ebctl(args ...string) string {
	p.Helper()

	var output, problems bytes.Buffer

	code := ebctl.App{
		Out: &output, Err: &problems, Environment: func(string) string { return "" }, Clock: clock.RealClock{},
		Terminal: func() (progress.Size, bool) { return progress.Size{}, false }, PollInterval: look,
	}.Run(p.Context(), append(args, "--address", p.url, "--username", p.user, "--password", p.password))
	if code != 0 {
		p.Fatalf("ebctl %v ended with %d: %s", args, code, problems.String())
	}

	return output.String()
}
