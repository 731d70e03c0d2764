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
)

// TestInstanceFromCreateToDelete is the story that everything is for.
func TestInstanceFromCreateToDelete(t *testing.T) {
	t.Parallel()

	eachDatabase(t, func(t *testing.T, fresh database) {
		l := start(t, fresh, 200*time.Millisecond, nil)

		for name, plan := range map[string]string{
			"aws": planAWS, "azure": planAzure, "gcp": planGCP, "trial": planTrial,
			"azure_lite": planAzureLite, "sap-converged-cloud": planConvergedCloud, "free": planFree, "preview": planPreview,
		} {
			t.Run(name, func(t *testing.T) {
				l := landscape{platform: platform{TB: t, url: l.url, user: user, password: password}, garden: l.garden}
				id := "instance-" + name

				l.faults(stuck())

				operation := l.create(id, plan)
				if again := l.create(id, plan); again != operation {
					t.Errorf("the repeated order is operation %s, want %s", again, operation)
				}

				l.faults(nil)
				l.succeeded(id)
				l.send(http.MethodPut, instancePath(id)+"?accepts_incomplete=true", orderOf(plan), http.StatusOK)

				if found := l.send(http.MethodGet, instancePath(id), nil, http.StatusOK); found.text("plan_id") != plan {
					t.Errorf("fetched %v", found.Body)
				}

				if shoots := l.shoots(); len(shoots) != 1 {
					t.Errorf("there are %d Shoots, want one", len(shoots))
				}

				answersTo(t, l.kubeconfig(id))
				l.remove(id, plan)
				l.gone(id)

				if shoots := l.shoots(); len(shoots) != 0 {
					t.Errorf("%d Shoots are left", len(shoots))
				}
			})
		}
	})
}

// TestAClusterThatTheTenantBrings makes the runtime of one instance the own cluster of another one.
func TestAClusterThatTheTenantBrings(t *testing.T) {
	t.Parallel()

	l := start(t, onSQLite, 200*time.Millisecond, nil)

	l.create("made", planAWS)
	l.succeeded("made")

	kubeconfig := l.kubeconfig("made")
	order := orderOf(planOwnCluster)
	order["parameters"] = map[string]any{
		"kubeconfig": base64.StdEncoding.EncodeToString(kubeconfig), "shootName": "made", "shootDomain": "made.example.com",
	}

	l.send(http.MethodPut, instancePath("own")+"?accepts_incomplete=true", order, http.StatusAccepted)
	l.succeeded("own")

	found := l.send(http.MethodGet, instancePath("own"), nil, http.StatusOK)
	if diff := cmp.Diff(map[string]any{"shootName": "made", "shootDomain": "made.example.com"}, found.Body["parameters"]); diff != "" {
		t.Errorf("the kubeconfig is shown, or something else is not: -want +got\n%s", diff)
	}

	if shoots := l.shoots(); len(shoots) != 1 {
		t.Errorf("there are %d Shoots, want the one that was made", len(shoots))
	}

	l.remove("own", planOwnCluster)
	l.gone("own")
	answersTo(t, kubeconfig)

	l.remove("made", planAWS)
	l.gone("made")
}

// answersTo has the runtime that the kubeconfig leads to tell its version.
func answersTo(t *testing.T, kubeconfig []byte) {
	t.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	version, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerVersion()
	if err != nil || !strings.HasPrefix(version.GitVersion, "v1.") {
		t.Errorf("the runtime answers %v, %v", version, err)
	}
}

// TestDeleteDuringCreate removes what a creation has begun, wherever it stands.
func TestDeleteDuringCreate(t *testing.T) {
	t.Parallel()

	eachDatabase(t, func(t *testing.T, fresh database) {
		l := start(t, fresh, 300*time.Millisecond, nil)

		l.create("at-once", planAWS)
		l.create("ordered", planAWS)
		l.until("the Shoots", func() bool { return len(l.shoots()) == 2 })
		l.create("just-now", planAWS)

		for _, id := range []string{"at-once", "ordered", "just-now"} {
			l.remove(id, planAWS)
		}

		for _, id := range []string{"at-once", "ordered", "just-now"} {
			l.gone(id)
		}

		if shoots := l.shoots(); len(shoots) != 0 {
			t.Errorf("%d Shoots are left", len(shoots))
		}
	})
}

// TestIDOfADeletedInstanceMayBeUsedAgain makes a new runtime under the old name.
func TestIDOfADeletedInstanceMayBeUsedAgain(t *testing.T) {
	t.Parallel()

	l := start(t, onSQLite, 100*time.Millisecond, nil)

	for range 2 {
		l.create("again", planTrial)
		l.succeeded("again")
		l.remove("again", planTrial)
		l.gone("again")
	}
}
