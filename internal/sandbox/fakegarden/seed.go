package fakegarden

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// Domain is the parent domain of all runtimes: <shoot>.<project>.<Domain>. It never resolves, because .test is a reserved
// top-level domain.
const Domain = "runtimes.test"

//go:embed seed.yaml
var seedTemplate string

// providers returns the provider types in seed.yaml. Each has a cloud profile with regions, machine types and versions, and a
// CredentialsBinding named after the type.
func providers() []string { return []string{"aws", "azure", "gcp", "openstack"} }

// seedValues returns the values for the template seed.yaml.
func seedValues(projects []string) map[string]any {
	namespaces := map[string]string{}
	for _, project := range projects {
		namespaces[project] = gardenlet.Namespace(project)
	}
	return map[string]any{
		"Projects": namespaces, "Providers": providers(),
		"Domains": map[string]string{"default-domain": Domain, "internal-domain": "internal." + Domain},
	}
}

// Seed creates the objects in seed.yaml for the given projects, or updates them in an existing garden. The API server must serve
// all kinds in seed.yaml. Objects that were removed from seed.yaml remain in existing gardens, because Shoots may refer to them.
func Seed(ctx context.Context, garden client.Client, projects ...string) error {
	return Apply(ctx, garden, seedTemplate, seedValues(projects))
}

// Apply fills in a template of YAML documents, and creates or updates its objects by server-side apply, in the order of the
// documents: a namespace must precede its objects. Apply is idempotent and leaves fields of other managers unchanged.
func Apply(ctx context.Context, garden client.Client, manifests string, values map[string]any) error {
	objects, err := render(manifests, values)
	if err != nil {
		return err
	}
	for _, object := range objects {
		configuration := client.ApplyConfigurationFromUnstructured(object)
		if err := garden.Apply(ctx, configuration, client.FieldOwner("garden"), client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// render returns the objects of a template of YAML documents. It returns an error if the template uses a value that is missing
// from values.
func render(manifests string, values map[string]any) ([]*unstructured.Unstructured, error) {
	parsed, err := template.New("manifests").Option("missingkey=error").Parse(manifests)
	if err != nil {
		return nil, fmt.Errorf("parsing the manifests: %w", err)
	}
	var documents bytes.Buffer
	if err := parsed.Execute(&documents, values); err != nil {
		return nil, fmt.Errorf("filling in the manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for document := range bytes.SplitSeq(documents.Bytes(), []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("decoding the manifests: %w", err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
