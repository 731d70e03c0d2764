package installation

import (
	"encoding/json"
	"fmt"

	"github.com/environment-broker/environment-broker/internal/secret"
)

// Inputs returns everything that determines the objects of a component: its namespace, values and manifests. It contains secret values.
func (c Component) Inputs(files []ManifestFile) ([]byte, error) {
	// Inventories in clusters contain digests of this JSON object, so its form must not change.
	content, err := json.Marshal(struct {
		Namespace string            `json:"namespace"`
		Values    map[string]string `json:"values"`
		Files     []ManifestFile    `json:"files"`
	}{c.Namespace, c.Values, files})
	if err != nil {
		return nil, fmt.Errorf("encoding component %s: %w", c.Name, err)
	}

	return content, nil
}

// Secrets returns the component's secret values.
func (c Component) Secrets() []string {
	values := make([]string, 0, len(c.SecretKeys))
	for _, key := range c.SecretKeys {
		values = append(values, c.Values[key])
	}

	return values
}

// Mask replaces the component's secret values in the given text.
func (c Component) Mask(text string) string { return secret.MaskIn(text, c.Secrets()...) }
