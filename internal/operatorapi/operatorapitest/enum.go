// Package operatorapitest helps tests to read the OpenAPI description of the operator API.
package operatorapitest

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

// Enum returns the sorted values of the named enumeration schema in openapi.yaml.
func Enum(tb testing.TB, schema string) []string {
	tb.Helper()

	var description struct {
		Components struct {
			Schemas map[string]struct {
				Enum []string `json:"enum"`
			} `json:"schemas"`
		} `json:"components"`
	}

	if err := yaml.Unmarshal(operatorapi.Description, &description); err != nil {
		tb.Fatal(err)
	}

	values := description.Components.Schemas[schema].Enum
	if len(values) == 0 {
		tb.Fatalf("the operator API has no enumeration %s", schema)
	}

	return slices.Sorted(slices.Values(values))
}
