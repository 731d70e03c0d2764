package operator

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

func TestEveryStateOfRuntimesIsDescribed(t *testing.T) {
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
		want = append(want, string(rule.State))
	}

	want = append(want, string(operatorapi.RuntimeStateDeleted)) // of the Provisioner
	slices.Sort(want)

	if diff := cmp.Diff(want, slices.Sorted(slices.Values(schemas["RuntimeState"].Enum))); diff != "" {
		t.Errorf("states of runtimes: -want +got\n%s", diff)
	}
}
