//go:build garden

package e2e

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/internal/replica"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestBindingsOnLocalGarden checks access and the removal of expired bindings with real API servers.
func TestBindingsOnLocalGarden(t *testing.T) {
	t.Parallel()

	var settings replica.Database

	w := startProgramsOn(t, localGarden(t, "--cluster-creation=1s"), func(tb testing.TB, service string) replica.Database {
		tb.Helper()

		fresh := harness.Postgres(tb, service)
		if service == "broker" {
			settings = fresh
		}

		return fresh
	})

	w.Create("bound", harness.PlanTrial)
	w.WantSucceeded("bound")

	runtime := runtimeOf(w)
	aggregateRoles(t, runtime)
	testBindings(t, w.platform, "bound", harness.PlanTrial)

	if left := accountsIn(t, runtime); left != 1 {
		t.Fatalf("the runtime has %d accounts of bindings, want one", left)
	}

	expire(t, settings)
	w.Until("expired bindings to be removed", func() bool { return accountsIn(t, runtime) == 0 })
	w.Send(http.MethodGet, harness.BindingPath("bound", "viewer"), nil, http.StatusNotFound)

	w.Delete("bound", harness.PlanTrial)
	w.WantGone("bound")
}

// aggregateRoles fills the roles view and edit. In real clusters the controller-manager does this; the local garden has none.
func aggregateRoles(t *testing.T, runtime *kubernetes.Clientset) {
	t.Helper()

	roles := runtime.RbacV1().ClusterRoles()

	for _, name := range []string{"view", "edit"} { // editors may also view
		role, err := roles.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}

		for _, selector := range role.AggregationRule.ClusterRoleSelectors {
			parts, err := roles.List(t.Context(), metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&selector)})
			if err != nil {
				t.Fatal(err)
			}

			for _, part := range parts.Items {
				role.Rules = append(role.Rules, part.Rules...)
			}
		}

		if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// runtimeOf returns a client with an administrator's access to the runtime.
func runtimeOf(w *programs) *kubernetes.Clientset {
	w.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig(w.kubeconfig("bound"))
	if err != nil {
		w.Fatal(err)
	}

	return kubernetes.NewForConfigOrDie(config)
}

// accountsIn counts the accounts of bindings in the runtime.
func accountsIn(t *testing.T, runtime *kubernetes.Clientset) int {
	t.Helper()

	accounts, err := runtime.CoreV1().ServiceAccounts("").List(t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/managed-by=environment-broker",
	})
	if err != nil {
		t.Fatal(err)
	}

	return len(accounts.Items)
}

// expire makes all bindings expire now.
func expire(t *testing.T, settings replica.Database) {
	t.Helper()

	address, err := settings.Storage()
	if err != nil {
		t.Fatal(err)
	}

	db, err := storage.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	if _, err := storage.Exec(t.Context(), db.Writer(), `UPDATE bindings SET expires_at = created_at`); err != nil {
		t.Fatal(err)
	}
}
