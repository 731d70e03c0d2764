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
)

// TestBindingsOnTheRealGarden has real API servers give and refuse access, and what has expired go.
func TestBindingsOnTheRealGarden(t *testing.T) {
	t.Parallel()

	var settings replica.Database

	w := newWorldOn(t, realGarden(t, "--cluster-creation=1s"), func(t *testing.T, service string) replica.Database {
		t.Helper()

		fresh := onPostgres(t, service)
		if service == "broker" {
			settings = fresh
		}

		return fresh
	})

	w.create("bound", planTrial)
	w.succeeded("bound")

	runtime := runtimeOf(w)
	aggregateRoles(t, runtime)
	bindingStory(t, w.platform, "bound", planTrial)

	if left := accountsIn(t, runtime); left != 1 {
		t.Fatalf("the runtime has %d accounts of bindings, want one", left)
	}

	expire(t, settings)
	w.until("the end of what has expired", func() bool { return accountsIn(t, runtime) == 0 })
	w.send(http.MethodGet, bindingPath("bound", "viewer"), nil, http.StatusNotFound)

	w.remove("bound", planTrial)
	w.gone("bound")
}

// aggregateRoles does what the controller-manager does in every cluster and nobody in this garden: it fills the roles view and edit.
func aggregateRoles(t *testing.T, runtime *kubernetes.Clientset) {
	t.Helper()

	roles := runtime.RbacV1().ClusterRoles()

	for _, name := range []string{"view", "edit"} { // who edits may view
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

// runtimeOf returns a client of the runtime's administrator.
func runtimeOf(w *world) *kubernetes.Clientset {
	w.T.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig(w.kubeconfig("bound"))
	if err != nil {
		w.T.Fatal(err)
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

// expire lets the time of all bindings be over, for which a test cannot wait.
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
