package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/internal/program/replica"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/test/harness"
)

// leaveRuntime creates an instance and suspends it without its Provisioner: an operator skips the removal of the runtime, so that
// the runtime becomes a leftover. leaveRuntime returns the ID of the runtime and the settings of the broker's database.
func leaveRuntime(t *testing.T, database harness.Database, id string) (e env, runtimeID string, settings replica.Database) {
	t.Helper()

	e = start(t, database, 100*time.Millisecond, func(configured *broker.Config, _ *provisioner.Config) {
		configured.ExpirationPeriods, settings = map[string]time.Duration{"aws": 0}, configured.Database
	})

	e.Create(id, harness.PlanAWS)
	e.WantSucceeded(id)
	runtimeID = e.runtime(id).RuntimeID

	reconnect := e.services.Proxy.Inject(harness.Match{Operation: "DeprovisionRuntime"}, harness.Disconnect)

	e.Update(id, map[string]any{"context": map[string]any{"active": false}})
	suspension := e.lastOperation(id)
	e.Until("advice to skip the step", func() bool { return strings.Contains(e.explain(suspension), "ebctl operation skip "+suspension) })

	if skipped := e.interveneAndWait("skip", suspension, "the Provisioner is down"); skipped.State != "succeeded" {
		t.Fatalf("the suspension has ended with %+v", skipped)
	}

	reconnect()

	return e, runtimeID, settings
}

// cleanUp cleans up the leftover of an instance and waits until it is gone.
func (e env) cleanUp(id string) {
	e.Helper()
	e.ebctl("leftover", "cleanup", id, "--reason", "the Provisioner is back")
	e.Until("the end of the leftover", func() bool {
		return strings.Contains(e.ebctl("instance", "list", "--leftovers"), "Nothing is left over")
	})
}

// TestResumptionAfterTheFormerRuntime checks that an instance is resumed only after its former runtime was removed, and then with a
// new cluster.
func TestResumptionAfterTheFormerRuntime(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e, former, _ := leaveRuntime(t, database, "resumed")
		shoot := e.shoots()[0].UID

		resumption := map[string]any{"service_id": harness.ServiceID, "context": map[string]any{"active": true}}
		rejected := e.Send(http.MethodPatch, harness.InstancePath("resumed")+harness.Incomplete, resumption, http.StatusUnprocessableEntity)

		if rejected.Text("error") != "ConcurrencyError" || e.runtime("resumed").Status.State != "suspended" {
			t.Errorf("got %s, and the instance is %s", rejected.Raw, e.runtime("resumed").Status.State)
		}

		e.cleanUp("resumed")
		e.Update("resumed", resumption)
		e.WantSucceeded("resumed")

		if shoots := e.shoots(); len(shoots) != 1 || shoots[0].UID == shoot || e.runtime("resumed").RuntimeID == former {
			t.Errorf("the instance has its former cluster, or %d Shoots exist instead of one", len(shoots))
		}

		harness.WantRuntimeResponds(t, "the resumed instance", e.kubeconfig("resumed"))
	})
}

// TestCleanupOfARuntimeInUse checks that a cleanup removes nothing from an instance that has its former runtime again, because an
// earlier release has resumed it.
func TestCleanupOfARuntimeInUse(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e, former, settings := leaveRuntime(t, database, "used")
		shoot := e.shoots()[0].UID

		// A replica of an earlier release does not look for leftovers, so hide this one from the resumption.
		db := harness.OpenDatabase(t, settings)
		if _, err := storage.Exec(t.Context(), db.Writer(), `UPDATE leftovers SET shoot_name = 'hidden'`); err != nil {
			t.Fatal(err)
		}

		e.Update("used", map[string]any{"context": map[string]any{"active": true}})
		e.WantSucceeded("used")

		if used := e.runtime("used").RuntimeID; used != former {
			t.Fatalf("the instance has the runtime %s, not its former runtime %s", used, former)
		}

		e.cleanUp("used")

		if shoots := e.shoots(); len(shoots) != 1 || shoots[0].UID != shoot || shoots[0].DeletionTimestamp != nil {
			t.Errorf("the cleanup has changed the cluster of the instance: %d Shoots", len(shoots))
		}

		harness.WantRuntimeResponds(t, "the instance", e.kubeconfig("used"))
		e.Delete("used", harness.PlanAWS)
		e.WantGone("used")

		if shoots := e.shoots(); len(shoots) != 0 {
			t.Errorf("%d Shoots remain", len(shoots))
		}
	})
}
