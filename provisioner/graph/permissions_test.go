package graph_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/provisioner/orders"
)

// TestKubeconfigPermission checks which roles get a kubeconfig, for each way to select the field. For all other roles, the
// service must not be asked for a kubeconfig.
func TestKubeconfigPermission(t *testing.T) {
	t.Parallel()

	const denied = "kubeconfig requires the admin role"

	queries := map[string]string{
		"field":    `{ runtimeStatus(id: "rt") { runtimeConfiguration { kubeconfig clusterConfig { name } } } }`,
		"alias":    `{ runtimeStatus(id: "rt") { runtimeConfiguration { clusterConfig { name } name: kubeconfig } } }`,
		"fragment": `{ runtimeStatus(id: "rt") { ...status } } fragment status on RuntimeStatus { runtimeConfiguration { ...config } } fragment config on RuntimeConfig { kubeconfig }`,
	}

	for role, message := range map[auth.Role]string{
		auth.RoleOSB: "", auth.RoleAdmin: "", auth.RoleOperator: denied, auth.RoleViewer: denied, "": denied,
	} {
		for name, query := range queries {
			var wanted orders.RuntimeFields

			server := startServerFor(t, runtimes{
				runtimeStatus: func(_ orders.Caller, _ string, want orders.RuntimeFields) (orders.RuntimeStatus, error) {
					wanted = want

					return orders.RuntimeStatus{}, nil
				},
			}, role)

			_, body := post(t, server, asTenant(query))

			var answer struct {
				Errors []struct{ Message string }
				Data   map[string]any
			}
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatal(err)
			}

			got := ""
			if len(answer.Errors) > 0 {
				got = answer.Errors[0].Message
			}

			if diff := cmp.Diff(message, got); diff != "" || wanted.Kubeconfig != (message == "") || answer.Data["runtimeStatus"] == nil {
				t.Errorf("role %q, %s: kubeconfig created: %t; message: -want +got\n%s%s", role, name, wanted.Kubeconfig, diff, body)
			}
		}
	}
}
