package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/test/harness"
)

// orchestrate orders an orchestration or its undo, and returns the ID of the new orchestration.
func (e env) orchestrate(path string, body any, status int) string {
	e.Helper()

	var accepted operatorapi.AcceptedOrchestration

	e.decode(e.Send(http.MethodPost, path, body, status).Raw, &accepted)

	return accepted.OrchestrationID
}

// wantOrchestrated waits for the end of an orchestration, and checks its state and its targets, including those that were left out.
func (e env) wantOrchestrated(id, state string, want map[string]string) {
	e.Helper()

	var shown operatorapi.Orchestration

	e.Until("the orchestration is "+state, func() bool {
		e.decode(e.Send(http.MethodGet, "/orchestrations/"+id, nil, http.StatusOK).Raw, &shown)

		return shown.State == state || shown.State == "failed"
	})

	got := map[string]string{}

	for _, query := range []string{"", "?state=left%20out"} {
		var list operatorapi.OrchestrationOperationList

		e.decode(e.Send(http.MethodGet, "/orchestrations/"+id+"/operations"+query, nil, http.StatusOK).Raw, &list)

		for _, target := range list.Data {
			text, _, _ := strings.Cut(target.Description, " by operation ")
			got[target.InstanceID] = target.State + ": " + text
		}
	}

	if diff := cmp.Diff(want, got); diff != "" || shown.State != state {
		e.Errorf("the orchestration is %s (%s), targets -want +got\n%s", shown.State, shown.Description, diff)
	}
}

// TestUndoOfAnOrchestration upgrades Kyma on several instances, and rolls the upgrades back. An instance whose modules were changed
// in the meantime must be left out.
func TestUndoOfAnOrchestration(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := start(t, database, 200*time.Millisecond, withReleases("1.0.0"))

		for _, id := range []string{"one", "two", "changed"} {
			e.Create(id, harness.PlanPreview)
		}

		for _, id := range []string{"one", "two", "changed"} {
			e.WantSucceeded(id)
		}

		parallel := map[string]any{"parallel": map[string]any{"workers": 3}}
		everything := map[string]any{"include": []any{map[string]any{"target": "all"}}}

		id := e.orchestrate("/upgrade/kyma", map[string]any{"targets": everything, "strategy": parallel, "kyma": map[string]any{"version": "1.1.0"}},
			http.StatusAccepted)
		upgraded := "succeeded: Kyma was upgraded to 1.1.0"
		e.wantOrchestrated(id, "succeeded", map[string]string{"one": upgraded, "two": upgraded, "changed": upgraded})
		e.wantModules("the upgrade", "one", "1.1.0", "eventing", "serverless")

		e.Update("changed", map[string]any{"parameters": list("eventing")})
		e.WantSucceeded("changed")

		const left = "left out: The modules or the credentials of Kyma have since been changed"

		plan := e.orchestrate("/orchestrations/"+id+"/undo", map[string]any{"dryRun": true}, http.StatusAccepted)
		e.wantOrchestrated(plan, "planned", map[string]string{"one": "pending: ", "two": "pending: ", "changed": left})
		e.wantModules("a plan changes nothing", "one", "1.1.0", "eventing", "serverless")

		e.Send(http.MethodPost, "/orchestrations/"+plan+"/apply", nil, http.StatusAccepted)

		back := "succeeded: Kyma was rolled back to 1.0.0"
		e.wantOrchestrated(plan, "succeeded", map[string]string{"one": back, "two": back, "changed": left})

		e.wantModules("rolled back", "one", "1.0.0", "eventing", "serverless")
		e.wantModules("rolled back", "two", "1.0.0", "eventing", "serverless")
		e.wantModules("left out", "changed", "1.1.0", "eventing")

		refused := e.Send(http.MethodPost, "/orchestrations/"+id+"/undo", nil, http.StatusConflict)
		if !strings.Contains(refused.Raw, "None of the 3 instances can be rolled back") {
			t.Errorf("a repeated undo: %s", refused.Raw)
		}

		again := e.orchestrate("/orchestrations/"+id+"/undo", map[string]any{"dryRun": true}, http.StatusAccepted)
		rolled := "left out: The upgrade has already been rolled back"
		e.wantOrchestrated(again, "planned", map[string]string{"one": rolled, "two": rolled, "changed": left})

		// The broker knows which version is installed: the next upgrade starts from it.
		only := map[string]any{"include": []any{map[string]any{"instanceID": "one"}}}
		next := e.orchestrate("/upgrade/kyma/plan", map[string]any{"targets": only, "kyma": map[string]any{"version": "1.1.0"}}, http.StatusCreated)

		var targets operatorapi.OrchestrationOperationList

		e.decode(e.Send(http.MethodGet, "/orchestrations/"+next+"/operations", nil, http.StatusOK).Raw, &targets)

		if len(targets.Data) != 1 || targets.Data[0].FromVersion != "1.0.0" {
			t.Errorf("planned %+v", targets.Data)
		}
	})
}
