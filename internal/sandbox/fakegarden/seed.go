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

// Domain is the parent of the domains of the runtimes, <shoot>.<project>.<Domain>. No DNS server resolves it: the domain test is
// reserved.
const Domain = "runtimes.test"

//go:embed seed.yaml
var seedTemplate string

// providers are the types of the providers in the seed, and the names of their CredentialsBindings. Each has a
// cloud profile with its regions, machines and versions.
func providers() []string { return []string{"aws", "azure", "gcp", "openstack"} }

// seed returns the objects of a new garden with one project, in an order in which they can be created: a namespace comes before
// its objects, and the cloud profiles before any Shoot.
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

// Seed creates the objects of a new garden or updates those of an older one, by server-side apply. It is idempotent and keeps
// fields that other managers have added. The API server must know all kinds of seed.yaml. Objects that are no longer in seed.yaml
// stay in an older garden: its Shoots may refer to them.
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
