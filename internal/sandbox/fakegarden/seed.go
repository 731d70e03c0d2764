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

// Domain is the parent domain of all runtimes: <shoot>.<project>.<Domain>. It never resolves, because the top-level domain test
// is reserved.
const Domain = "runtimes.test"

//go:embed seed.yaml
var seedTemplate string

// providers returns the provider types in the seed. Each has a cloud profile with regions, machine types and versions, and a
// CredentialsBinding with the same name.
func providers() []string { return []string{"aws", "azure", "gcp", "openstack"} }

// seed returns the objects of a new garden with one project, in creation order: a namespace precedes its objects, and cloud
// profiles precede Shoots.
func seed(project string) ([]*unstructured.Unstructured, error) {
	parsed, err := template.New("seed").Option("missingkey=error").Parse(seedTemplate)
	if err != nil {
		return nil, fmt.Errorf("parsing the seed: %w", err)
	}
	var documents bytes.Buffer
	if err := parsed.Execute(&documents, map[string]any{
		"Project": project, "Namespace": gardenlet.Namespace(project), "Providers": providers(),
		"Domains": map[string]string{"default-domain": Domain, "internal-domain": "internal." + Domain},
	}); err != nil {
		return nil, fmt.Errorf("filling in the seed: %w", err)
	}
	var objects []*unstructured.Unstructured
	for document := range bytes.SplitSeq(documents.Bytes(), []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("decoding the seed: %w", err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Seed creates the objects in seed.yaml by server-side apply, or updates those of an existing garden. It is idempotent and leaves
// fields of other managers unchanged. The API server must serve all kinds in seed.yaml. Objects that were removed from seed.yaml
// remain in existing gardens, because Shoots may refer to them.
func Seed(ctx context.Context, garden client.Client, project string) error {
	objects, err := seed(project)
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
