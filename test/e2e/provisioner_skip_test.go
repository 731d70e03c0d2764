package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakedirector"
	"github.com/environment-broker/environment-broker/test/harness"
)

// skip skips a step of an operation of the Provisioner, as soon as the operation is at this step.
func (c clusters) skip(operationID, step string) {
	c.Helper()

	body, err := json.Marshal(operatorapi.Intervention{Reason: "Director was shut down", Step: step})
	if err != nil {
		c.Fatal(err)
	}

	harness.Until(c, "operation "+operationID+" to skip "+step, func() bool {
		reply := c.operate(harness.Call{Method: http.MethodPost, Path: "/operations/" + operationID + "/skip", Body: string(body)})
		if reply.Status != http.StatusAccepted && reply.Status != http.StatusConflict {
			c.Fatalf("skipping %s: %d %s", step, reply.Status, reply.Raw)
		}

		return reply.Status == http.StatusAccepted
	})
}

// operate calls the operator API of the Provisioner.
func (c clusters) operate(call harness.Call) harness.Reply {
	c.Helper()

	reply, err := harness.Endpoint{URL: strings.TrimSuffix(c.url, "/graphql")}.Do(call)
	if err != nil {
		c.Fatal(err)
	}

	return reply
}

// TestSkipStepsOfDirector creates and removes a runtime while Director fails. Operators skip the steps that only inform Director.
func TestSkipStepsOfDirector(t *testing.T) {
	t.Parallel()

	c := newAgentEnv(t, projectOf(harness.StartGarden(t, 200*time.Millisecond)))

	for _, operation := range []string{"updateRuntime", "unregisterRuntime"} {
		c.connector.Inject(fakedirector.Fault{Operation: operation, Status: http.StatusServiceUnavailable, Times: -1})
	}

	created := c.mustSend(provisionRuntime, map[string]any{"config": map[string]any{
		"runtimeInput": map[string]any{"name": "c-gcp"}, "clusterConfig": map[string]any{"gardenerConfig": clusterOf("gcp")},
	}})
	c.skip(created.ID, "Describe_Runtime")
	c.wantSucceeded(created.ID)

	var removal string
	if refused := c.send(`mutation ($id: String!) { result: deprovisionRuntime(id: $id) }`, map[string]any{"id": created.RuntimeID}, &removal); refused != "" {
		t.Fatal(refused)
	}

	c.skip(removal, "Unregister_Runtime")
	c.wantSucceeded(removal)

	if left := c.directorRuntime(created.RuntimeID); left.Name != "c-gcp" {
		t.Errorf("Director has %+v, want the runtime that was not unregistered", left)
	}
}
