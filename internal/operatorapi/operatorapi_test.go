package operatorapi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/internal/operatorapi"
)

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}

	return string(content)
}

// TestContributorPage checks that the files that docs/contributor/add-an-operator-endpoint.md names exist.
func TestContributorPage(t *testing.T) {
	page := read(t, "docs/contributor/add-an-operator-endpoint.md")

	paths := regexp.MustCompile("`((?:internal|broker|provisioner)/[^`]+)`").FindAllStringSubmatch(page, -1)
	if len(paths) == 0 {
		t.Fatal("the page names no files")
	}

	for _, path := range paths {
		if _, err := os.Stat(filepath.Join(root, path[1])); err != nil {
			t.Errorf("the page names %s: %v", path[1], err)
		}
	}
}

// TestEveryOperationIsGenerated checks that each operation of openapi.yaml has a route, and that ebctl's client has a
// method for each operation with a JSON response.
func TestEveryOperationIsGenerated(t *testing.T) {
	var description struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}

	if err := yaml.Unmarshal(operatorapi.Description, &description); err != nil {
		t.Fatal(err)
	}

	routes := read(t, "internal/operatorapi/operatorserver/routes.gen.go")
	calls := read(t, "internal/ebctl/brokerclient/operator.gen.go")
	withoutCall := map[string]bool{"getDescription": true, "getKubeconfig": true, "getOperation": true}

	for path, methods := range description.Paths {
		for method, operation := range methods {
			id := operation.OperationID
			name := strings.ToUpper(id[:1]) + id[1:]

			if !strings.Contains(routes, "to."+name) {
				t.Errorf("%s %s: %s has no route; run make generate", method, path, id)
			}

			if call := ") " + name + "("; strings.Contains(calls, call) == withoutCall[id] {
				t.Errorf("%s %s: the call %s differs from openapi.yaml; run make generate", method, path, id)
			}
		}
	}
}

// TestOnlyKubeconfigsAreCredentials lists the fields of the operator API whose names suggest credentials. Before a response with
// credentials, the service must write an audit entry. A test must check that there is no response without an entry, as
// broker/operator.TestNoKubeconfigWithoutAnEntry does.
func TestOnlyKubeconfigsAreCredentials(t *testing.T) {
	var description struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}

	if err := yaml.Unmarshal([]byte(read(t, "internal/operatorapi/openapi.yaml")), &description); err != nil {
		t.Fatal(err)
	}

	credential, found := regexp.MustCompile(`(?i)kubeconfig|token|credential|password|certificate|key$`), []string{}

	for name, schema := range description.Components.Schemas {
		for property := range schema.Properties {
			if credential.MatchString(property) {
				found = append(found, name+"."+property)
			}
		}
	}

	slices.Sort(found)

	// The certificates of a platform are values of attributes, such as names, and the binding of a Shoot is its name.
	if want := "AdminKubeconfig.kubeconfig Platform.certificates ShootAdoption.credentialsBinding"; strings.Join(found, " ") != want {
		t.Errorf("fields with credentials: want %s, got %v", want, found)
	}
}
