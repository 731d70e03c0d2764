package graph_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/environment-broker/environment-broker/provisioner/graph"
)

// TestOnlyKubeconfigsAreCredentials lists the fields of responses that may contain credentials, by their names. Each of them needs an audit
// entry before the response, and a test like provisioner/orders.TestKubeconfigIsNotIssuedUnaudited.
func TestOnlyKubeconfigsAreCredentials(t *testing.T) {
	t.Parallel()

	credential := regexp.MustCompile(`(?i)kubeconfig|token|credential|password|certificate|key$`)

	found := []string{}

	for name, definition := range graph.Schema().Types {
		if definition.Kind != ast.Object || strings.HasPrefix(name, "__") {
			continue
		}

		for _, field := range definition.Fields {
			if credential.MatchString(field.Name) {
				found = append(found, name+"."+field.Name)
			}
		}
	}

	slices.Sort(found)

	// ConfigEntry.key is the name of a Kyma setting and not a credential.
	if diff := cmp.Diff([]string{"ConfigEntry.key", "RuntimeConfig.kubeconfig"}, found); diff != "" {
		t.Errorf("fields with credentials: -want +got\n%s", diff)
	}
}
