//go:build garden

package e2e

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/environment-broker/environment-broker/internal/program/replica"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestBindingsOnLocalGarden checks the permissions of bindings and the removal of expired bindings with real API
// servers.
func TestBindingsOnLocalGarden(t *testing.T) {
	t.Parallel()

	var settings replica.Database

	p := startProgramsOn(t, sharedGarden(t, "own"), func(tb testing.TB, service string) replica.Database {
		tb.Helper()

		database := harness.Postgres(tb, service)
		if service == "broker" {
			settings = database
		}

		return database
	})

	p.Create("bound", harness.PlanTrial)
	p.WantSucceeded("bound")

	runtime := harness.RuntimeClient(t, p.kubeconfig("bound"))
	testBindings(t, p.platform, "bound", harness.PlanTrial)

	if left := countBindingAccounts(t, runtime); left != 1 {
		t.Fatalf("the runtime has %d accounts of bindings, want one", left)
	}

	expireBindings(t, settings)
	p.Until("the expired bindings to be removed", func() bool { return countBindingAccounts(t, runtime) == 0 })
	p.Send(http.MethodGet, harness.BindingPath("bound", "viewer"), nil, http.StatusNotFound)

	p.Delete("bound", harness.PlanTrial)
	p.WantGone("bound")
}

// countBindingAccounts returns the number of ServiceAccounts in the runtime that belong to bindings.
func countBindingAccounts(t *testing.T, runtime *kubernetes.Clientset) int {
	t.Helper()

	accounts, err := runtime.CoreV1().ServiceAccounts("").List(t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/managed-by=environment-broker",
	})
	if err != nil {
		t.Fatal(err)
	}

	return len(accounts.Items)
}

// expireBindings makes all bindings expire by changing their rows in the database.
func expireBindings(t *testing.T, settings replica.Database) {
	t.Helper()

	db := harness.OpenDatabase(t, settings)
	if _, err := storage.Exec(t.Context(), db.Writer(), `UPDATE bindings SET expires_at = created_at`); err != nil {
		t.Fatal(err)
	}
}
