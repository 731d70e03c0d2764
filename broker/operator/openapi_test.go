package operator

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func TestEveryRouteHasARole(t *testing.T) {
	known := []string{roleNone, string(auth.RoleViewer), string(auth.RoleOperator), string(auth.RoleAdmin)}

	for _, route := range routes(&api{}) {
		if !slices.Contains(known, route.role) {
			t.Errorf("%s %s: x-role is %q, want one of %v", route.method, route.path, route.role, known)
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
			if public := operation.Security != nil && len(*operation.Security) == 0; public != (operation.Role == roleNone) {
				t.Errorf("%s %s: x-role %q and security contradict each other", method, path, operation.Role)
			}
		}
	}
}

func TestEveryStateIsDescribed(t *testing.T) {
	var description struct {
		Components struct {
			Schemas map[string]struct {
				Enum []string `json:"enum"`
			} `json:"schemas"`
		} `json:"components"`
	}

	if err := yaml.Unmarshal(operatorapi.Description, &description); err != nil {
		t.Fatal(err)
	}

	schemas := description.Components.Schemas

	var want []string
	for _, rule := range stateRules() {
		want = append(want, string(rule.state))
	}

	slices.Sort(want)

	if diff := cmp.Diff(want, slices.Sorted(slices.Values(schemas["RuntimeState"].Enum))); diff != "" {
		t.Errorf("states of runtimes: -want +got\n%s", diff)
	}

	if diff := cmp.Diff(states(), schemas["OperationState"].Enum); diff != "" {
		t.Errorf("states of operations: -want +got\n%s", diff)
	}
}
