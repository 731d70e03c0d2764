package operatorserver

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorapitest"
)

// stub implements the endpoints of routes that a test only inspects. Calling an endpoint panics.
type stub struct{ BrokerHandlers }

func TestEveryRouteHasARole(t *testing.T) {
	known := []string{RoleNone, string(auth.RoleViewer), string(auth.RoleOperator), string(auth.RoleAdmin)}

	for _, route := range BrokerRoutes(stub{}) {
		if !slices.Contains(known, route.Role) {
			t.Errorf("%s %s: x-role is %q, want one of %v", route.Method, route.Path, route.Role, known)
		}
	}
}

func TestRoutesWithoutARoleAreDescribedAsPublic(t *testing.T) {
	var description struct {
		Paths map[string]map[string]struct {
			Role     string `json:"x-role"`
			Security *[]any `json:"security"`
		} `json:"paths"`
	}

	if err := yaml.Unmarshal(operatorapi.Description, &description); err != nil {
		t.Fatal(err)
	}

	for path, methods := range description.Paths {
		for method, operation := range methods {
			if public := operation.Security != nil && len(*operation.Security) == 0; public != (operation.Role == RoleNone) {
				t.Errorf("%s %s: x-role %q and security contradict each other", method, path, operation.Role)
			}
		}
	}
}

// TestRoutesOfTheProvisioner checks that the Provisioner has the broker's routes, except those about plans, bindings and other objects
// that only the broker has.
func TestRoutesOfTheProvisioner(t *testing.T) {
	names := func(routes []Route) []string {
		all := []string{}
		for _, route := range routes {
			all = append(all, route.Method+" "+route.Path+" "+route.Role)
		}

		return all
	}

	both := names(ProvisionerRoutes(stub{}))
	own := slices.DeleteFunc(names(BrokerRoutes(stub{})), func(route string) bool { return slices.Contains(both, route) })

	want := []string{
		"GET /catalog viewer", "GET /cloudaccounts viewer", "POST /cloudaccounts/{cloud_account}/cleanup operator", "POST /cloudaccounts/{cloud_account}/release operator",
		"GET /credentials viewer", "GET /events viewer", "PUT /expire/service_instance/{instance_id} operator",
		"GET /jobs viewer", "POST /jobs/{name}/run operator", "GET /kubeconfig/{instance_id} none",
		"POST /leftovers/{leftover_id}/cleanup operator", "POST /leftovers/{leftover_id}/confirm operator",
		"GET /orchestrations viewer", "GET /orchestrations/{orchestration_id} viewer",
		"POST /orchestrations/{orchestration_id}/apply operator", "PUT /orchestrations/{orchestration_id}/cancel operator",
		"GET /orchestrations/{orchestration_id}/operations viewer", "GET /orchestrations/{orchestration_id}/operations/{operation_id} viewer",
		"PUT /orchestrations/{orchestration_id}/pause operator", "PUT /orchestrations/{orchestration_id}/resume operator",
		"POST /orchestrations/{orchestration_id}/retry operator", "POST /orchestrations/{orchestration_id}/undo operator", "GET /platforms admin",
		"GET /processes viewer", "GET /quotas viewer", "POST /runtimes/{instance_id}/adminkubeconfig admin", "GET /runtimes/{instance_id}/bindings viewer",
		"POST /runtimes/{instance_id}/grant admin", "POST /runtimes/{instance_id}/label operator",
		"POST /runtimes/{instance_id}/move admin", "POST /runtimes/{instance_id}/protect operator",
		"POST /runtimes/{instance_id}/renewCredentials operator", "POST /runtimes/{instance_id}/revoke admin",
		"POST /runtimes/{instance_id}/unprotect operator", "POST /runtimes/{instance_id}/upgradeCluster operator", "POST /runtimes/{instance_id}/upgradeKyma operator",
		"POST /runtimes/{instance_id}/upgradeTime operator", "POST /shoots/{shoot_name}/adopt admin",
		"POST /upgrade/cluster operator", "POST /upgrade/cluster/plan operator", "POST /upgrade/kyma operator", "POST /upgrade/kyma/plan operator",
		"GET /webhooks operator", "POST /webhooks admin", "DELETE /webhooks/{webhook_id} admin", "GET /webhooks/{webhook_id} operator",
		"GET /webhooks/{webhook_id}/deliveries operator", "POST /webhooks/{webhook_id}/enable operator",
		"POST /webhooks/{webhook_id}/replay operator", "POST /webhooks/{webhook_id}/rotate admin", "POST /webhooks/{webhook_id}/test operator",
	}
	if diff := cmp.Diff(want, own); diff != "" {
		t.Errorf("routes of the broker alone: -want +got\n%s", diff)
	}

	if !slices.Contains(both, "POST /operations/{operation_id}/retry operator") || len(both) != 17 {
		t.Errorf("routes of both: %v", both)
	}
}

func TestEveryStateOfOperationsIsDescribed(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(slices.Values(OperationStates())), operatorapitest.Enum(t, "OperationState")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
