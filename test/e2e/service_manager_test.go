package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/test/harness"
)

// serviceManagerContext returns a context with credentials for Service Manager.
func serviceManagerContext(clientSecret string) map[string]any {
	return map[string]any{"sm_operator_credentials": map[string]any{
		"clientid": "client", "clientsecret": clientSecret, "sm_url": "https://sm.example.com", "url": "https://tokens.example.com",
	}}
}

// serviceManagerSecret returns the values in the sap-btp-manager Secret on an instance's runtime.
func (e env) serviceManagerSecret(id string) map[string]string {
	e.Helper()

	found, err := harness.RuntimeClient(e, e.kubeconfig(id)).CoreV1().Secrets("kyma-system").Get(e.Context(), "sap-btp-manager", metav1.GetOptions{})
	if err != nil {
		e.Fatal(err)
	}

	values := map[string]string{}
	for key, value := range found.Data {
		values[key] = string(value)
	}

	return values
}

// TestServiceManagerCredentials checks that a runtime gets the credentials in its order, that a rotation replaces them without a
// change of the Shoot, and that the cluster ID stays the same.
func TestServiceManagerCredentials(t *testing.T) {
	t.Parallel()

	harness.EachDatabase(t, func(t *testing.T, database harness.Database) {
		e := start(t, database, 200*time.Millisecond)

		order := harness.Order(harness.PlanAWS)
		context, _ := order["context"].(map[string]any)
		if context == nil {
			context = map[string]any{}
		}

		context["sm_operator_credentials"] = serviceManagerContext("first")["sm_operator_credentials"]
		order["context"] = context
		e.Send(http.MethodPut, harness.InstancePath("mine")+harness.Incomplete, order, http.StatusAccepted)
		e.WantSucceeded("mine")

		first := e.serviceManagerSecret("mine")
		clusterID := first["cluster_id"]
		want := map[string]string{
			"clientid": "client", "clientsecret": "first", "sm_url": "https://sm.example.com", "tokenurl": "https://tokens.example.com",
			"cluster_id": clusterID,
		}

		if diff := cmp.Diff(want, first); diff != "" || clusterID == "" {
			t.Fatalf("the Secret of the new runtime: -want +got\n%s", diff)
		}

		before := e.shoots()[0].Generation

		e.Update("mine", map[string]any{"context": serviceManagerContext("second")})
		e.WantSucceeded("mine")

		want["clientsecret"] = "second"
		if diff := cmp.Diff(want, e.serviceManagerSecret("mine")); diff != "" {
			t.Errorf("the Secret after the rotation: -want +got\n%s", diff)
		}

		if after := e.shoots()[0].Generation; after != before {
			t.Errorf("the rotation changed the Shoot from generation %d to %d", before, after)
		}

		e.Delete("mine", harness.PlanAWS)
		e.WantGone("mine")
	})
}
