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

func TestEveryStateOfOperationsIsDescribed(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(slices.Values(OperationStates())), operatorapitest.Enum(t, "OperationState")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
