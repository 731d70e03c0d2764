package e2e

import (
	"encoding/base64"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestInstanceFromCreateToDelete checks that an instance can be created, used and deleted, for every plan for which the Provisioner
// creates clusters.
func TestInstanceFromCreateToDelete(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := start(t, database, 200*time.Millisecond)

		for name, plan := range map[string]string{
			"aws": harness.PlanAWS, "azure": harness.PlanAzure, "gcp": harness.PlanGCP, "trial": harness.PlanTrial,
			"azure_lite": harness.PlanAzureLite, "sap-converged-cloud": harness.PlanConvergedCloud, "free": harness.PlanFree, "preview": harness.PlanPreview,
		} {
			t.Run(name, func(t *testing.T) {
				e := e.in(t)
				id := "instance-" + name

				e.faults(harness.StuckClusters())

				operation := e.Create(id, plan)
				if again := e.Create(id, plan); again != operation {
					t.Errorf("the repeated order returned operation %s, want %s", again, operation)
				}

				e.faults(nil)
				e.WantSucceeded(id)
				e.Send(http.MethodPut, harness.InstancePath(id)+harness.Incomplete, harness.Order(plan), http.StatusOK)

				if found := e.Send(http.MethodGet, harness.InstancePath(id), nil, http.StatusOK); found.Text("plan_id") != plan {
					t.Errorf("the fetch returned %v", found.Body)
				}

				if shoots := e.shoots(); len(shoots) != 1 {
					t.Errorf("want one Shoot, got %d", len(shoots))
				}

				harness.WantRuntimeResponds(t, "the administrator's kubeconfig", e.kubeconfig(id))
				e.Delete(id, plan)
				e.WantGone(id)

				if shoots := e.shoots(); len(shoots) != 0 {
					t.Errorf("%d Shoots remain", len(shoots))
				}
			})
		}
	})
}

// TestOwnCluster checks that an instance of plan own_cluster uses the cluster of another instance without a new Shoot, and that
// the broker does not return the kubeconfig.
func TestOwnCluster(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 200*time.Millisecond)

	e.Create("made", harness.PlanAWS)
	e.WantSucceeded("made")

	kubeconfig := e.kubeconfig("made")
	order := harness.Order(harness.PlanOwnCluster)
	order["parameters"] = map[string]any{
		"kubeconfig": base64.StdEncoding.EncodeToString(kubeconfig), "shootName": "made", "shootDomain": "made.example.com",
	}

	e.Send(http.MethodPut, harness.InstancePath("own")+harness.Incomplete, order, http.StatusAccepted)
	e.WantSucceeded("own")

	found := e.Send(http.MethodGet, harness.InstancePath("own"), nil, http.StatusOK)
	if diff := cmp.Diff(map[string]any{"shootName": "made", "shootDomain": "made.example.com"}, found.Body["parameters"]); diff != "" {
		t.Errorf("parameters, which must not contain the kubeconfig: -want +got\n%s", diff)
	}

	var shown operatorapi.Runtime

	e.decode(e.ebctl("instance", "get", "own", "-o", "json"), &shown)

	if listed := e.runtime("own").ShootName; shown.ShootName != "made" || listed != "" {
		t.Errorf("ebctl shows the cluster %q, and %q in lists; want the ordered name, and none in lists", shown.ShootName, listed)
	}

	if shoots := e.shoots(); len(shoots) != 1 {
		t.Errorf("want only the Shoot of the first instance, got %d", len(shoots))
	}

	e.Delete("own", harness.PlanOwnCluster)
	e.WantGone("own")
	harness.WantRuntimeResponds(t, "the administrator's kubeconfig", kubeconfig)

	e.Delete("made", harness.PlanAWS)
	e.WantGone("made")
}

// TestDeleteDuringCreate checks that instances can be deleted at different stages of their creation, and that no Shoot remains.
func TestDeleteDuringCreate(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := start(t, database, 300*time.Millisecond)

		e.Create("at-once", harness.PlanAWS)
		e.Create("ordered", harness.PlanAWS)
		e.Until("the Shoots", func() bool { return len(e.shoots()) == 2 })
		e.Create("just-now", harness.PlanAWS)

		for _, id := range []string{"at-once", "ordered", "just-now"} {
			e.Delete(id, harness.PlanAWS)
		}

		for _, id := range []string{"at-once", "ordered", "just-now"} {
			e.WantGone(id)
		}

		if shoots := e.shoots(); len(shoots) != 0 {
			t.Errorf("%d Shoots remain", len(shoots))
		}
	})
}

func TestIDOfDeletedInstanceIsReusable(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 100*time.Millisecond)

	for range 2 {
		e.Create("again", harness.PlanTrial)
		e.WantSucceeded("again")
		e.Delete("again", harness.PlanTrial)
		e.WantGone("again")
	}
}

// TestUnreachableOwnCluster checks that an instance of plan own_cluster fails with a clear reason if its cluster does not
// respond.
func TestUnreachableOwnCluster(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, 200*time.Millisecond, func(settings *broker.Config, _ *provisioner.Config) {
		settings.OwnClusterTimeout = time.Nanosecond
	})

	kubeconfig := `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],
		"users":[{"name":"u","user":{"token":"hush"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`
	order := harness.Order(harness.PlanOwnCluster)
	order["parameters"] = map[string]any{
		"kubeconfig": base64.StdEncoding.EncodeToString([]byte(kubeconfig)), "shootName": "gone", "shootDomain": "gone.example.com",
	}

	e.Send(http.MethodPut, harness.InstancePath("gone")+harness.Incomplete, order, http.StatusAccepted)
	e.WantFailed("gone", "Connecting to the cluster failed: the cluster at 127.0.0.1:1 is not reachable: connection refused")
}

// TestProgressMoves checks that last_operation shows several percentages, which the broker gets from the Provisioner, while a
// cluster is created.
func TestProgressMoves(t *testing.T) {
	t.Parallel()

	e := start(t, harness.SQLite, time.Minute)
	e.Create("moving", harness.PlanAWS)

	seen := map[string]bool{}

	e.Until("two percentages above 0", func() bool {
		var last struct{ State, Description string }

		e.decode(e.Send(http.MethodGet, harness.InstancePath("moving")+"/last_operation", nil, http.StatusOK).Raw, &last)

		if found := regexp.MustCompile(`^Creating the cluster: ([1-9]\d*) %`).FindStringSubmatch(last.Description); found != nil {
			seen[found[1]] = true
		}

		if last.State == "succeeded" {
			t.Fatalf("the creation has ended after the percentages %v", slices.Collect(maps.Keys(seen)))
		}

		return len(seen) == 2
	})
}
