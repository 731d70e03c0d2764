package e2e

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/test/harness"
)

// TestInstanceFromCreateToDelete creates, uses and deletes an instance of every plan.
func TestInstanceFromCreateToDelete(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, fresh harness.Database) {
		l := start(t, fresh, 200*time.Millisecond)

		for name, plan := range map[string]string{
			"aws": harness.PlanAWS, "azure": harness.PlanAzure, "gcp": harness.PlanGCP, "trial": harness.PlanTrial,
			"azure_lite": harness.PlanAzureLite, "sap-converged-cloud": harness.PlanConvergedCloud, "free": harness.PlanFree, "preview": harness.PlanPreview,
		} {
			t.Run(name, func(t *testing.T) {
				l := l.in(t)
				id := "instance-" + name

				l.faults(stuck())

				operation := l.Create(id, plan)
				if again := l.Create(id, plan); again != operation {
					t.Errorf("the repeated order returned operation %s, want %s", again, operation)
				}

				l.faults(nil)
				l.WantSucceeded(id)
				l.Send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, harness.Order(plan), http.StatusOK)

				if found := l.Send(http.MethodGet, harness.InstancePath(id), nil, http.StatusOK); found.Text("plan_id") != plan {
					t.Errorf("the fetch returned %v", found.Body)
				}

				if shoots := l.shoots(); len(shoots) != 1 {
					t.Errorf("want one Shoot, got %d", len(shoots))
				}

				wantRuntimeAnswers(t, l.kubeconfig(id))
				l.Delete(id, plan)
				l.WantGone(id)

				if shoots := l.shoots(); len(shoots) != 0 {
					t.Errorf("%d Shoots remain", len(shoots))
				}
			})
		}
	})
}

// TestOwnCluster creates an instance of plan own_cluster with the runtime of another instance.
func TestOwnCluster(t *testing.T) {
	t.Parallel()

	l := start(t, harness.SQLite, 200*time.Millisecond)

	l.Create("made", harness.PlanAWS)
	l.WantSucceeded("made")

	kubeconfig := l.kubeconfig("made")
	order := harness.Order(harness.PlanOwnCluster)
	order["parameters"] = map[string]any{
		"kubeconfig": base64.StdEncoding.EncodeToString(kubeconfig), "shootName": "made", "shootDomain": "made.example.com",
	}

	l.Send(http.MethodPut, harness.InstancePath("own")+harness.Incomplete, order, http.StatusAccepted)
	l.WantSucceeded("own")

	found := l.Send(http.MethodGet, harness.InstancePath("own"), nil, http.StatusOK)
	if diff := cmp.Diff(map[string]any{"shootName": "made", "shootDomain": "made.example.com"}, found.Body["parameters"]); diff != "" {
		t.Errorf("parameters, which must not contain the kubeconfig: -want +got\n%s", diff)
	}

	if shoots := l.shoots(); len(shoots) != 1 {
		t.Errorf("want only the Shoot of the first instance, got %d", len(shoots))
	}

	l.Delete("own", harness.PlanOwnCluster)
	l.WantGone("own")
	wantRuntimeAnswers(t, kubeconfig)

	l.Delete("made", harness.PlanAWS)
	l.WantGone("made")
}

// wantRuntimeAnswers checks that the runtime of a kubeconfig responds.
func wantRuntimeAnswers(t *testing.T, kubeconfig []byte) {
	t.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	version, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerVersion()
	if err != nil || !strings.HasPrefix(version.GitVersion, "v1.") {
		t.Errorf("the runtime returned version %v, error %v", version, err)
	}
}

// TestDeleteDuringCreate deletes instances at different stages of their creation.
func TestDeleteDuringCreate(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, fresh harness.Database) {
		l := start(t, fresh, 300*time.Millisecond)

		l.Create("at-once", harness.PlanAWS)
		l.Create("ordered", harness.PlanAWS)
		l.Until("the Shoots", func() bool { return len(l.shoots()) == 2 })
		l.Create("just-now", harness.PlanAWS)

		for _, id := range []string{"at-once", "ordered", "just-now"} {
			l.Delete(id, harness.PlanAWS)
		}

		for _, id := range []string{"at-once", "ordered", "just-now"} {
			l.WantGone(id)
		}

		if shoots := l.shoots(); len(shoots) != 0 {
			t.Errorf("%d Shoots remain", len(shoots))
		}
	})
}

// TestIDOfDeletedInstanceIsReusable creates a new instance with the ID of a deleted one.
func TestIDOfDeletedInstanceIsReusable(t *testing.T) {
	t.Parallel()

	l := start(t, harness.SQLite, 100*time.Millisecond)

	for range 2 {
		l.Create("again", harness.PlanTrial)
		l.WantSucceeded("again")
		l.Delete("again", harness.PlanTrial)
		l.WantGone("again")
	}
}
