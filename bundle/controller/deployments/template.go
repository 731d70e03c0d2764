package deployments

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

const (
	// maxName is the maximum length of the name of a Bundle.
	maxName = 63
	// nameDigits is the number of hash digits in a shortened name, which keep the Bundles of different BundleDeployments distinct.
	nameDigits = 8
	base36     = 36
)

// templateHash returns the SHA-224 digest of a template in base 36. It covers the spec, the labels and the annotations. The order
// of keys is ignored, and so are empty values. A field that a later version adds therefore does not change the hashes of existing
// templates.
func templateHash(template v1alpha1.BundleTemplate) (string, error) {
	text, err := json.Marshal(struct {
		Labels      map[string]string     `json:"labels"`
		Annotations map[string]string     `json:"annotations"`
		Spec        v1alpha1.TemplateSpec `json:"spec"`
	}{template.Metadata.Labels, template.Metadata.Annotations, template.Spec})
	if err != nil {
		return "", fmt.Errorf("computing the hash of the template: %w", err)
	}

	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return "", fmt.Errorf("computing the hash of the template: %w", err)
	}

	// json.Marshal sorts the keys of maps.
	canonical, err := json.Marshal(withoutEmpty(content))
	if err != nil {
		return "", fmt.Errorf("computing the hash of the template: %w", err)
	}

	return digits(canonical), nil
}

// digits returns the SHA-224 digest of text in base 36.
func digits(text []byte) string {
	sum := sha256.Sum224(text)

	return new(big.Int).SetBytes(sum[:]).Text(base36)
}

// withoutEmpty returns the value without those entries of maps that are null, false, or an empty string, map or list.
func withoutEmpty(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return value
	}

	kept := map[string]any{}

	for key, field := range fields {
		switch reduced := withoutEmpty(field).(type) {
		case nil:
		case map[string]any:
			if len(reduced) > 0 {
				kept[key] = reduced
			}
		case []any:
			if len(reduced) > 0 {
				kept[key] = reduced
			}
		case string:
			if reduced != "" {
				kept[key] = reduced
			}
		case bool:
			if reduced {
				kept[key] = reduced
			}
		default:
			kept[key] = reduced
		}
	}

	return kept
}

// bundleName returns <name>-<hash>. If the result would be too long, it shortens the name of the BundleDeployment and adds digits
// of the name's hash. BundleDeployments with equal templates thus have different Bundles even if their names start with the same
// characters.
func bundleName(deployment, hash string) string {
	room := maxName - len(hash) - 1
	if len(deployment) <= room {
		return deployment + "-" + hash
	}

	own := digits([]byte(deployment))[:nameDigits]
	short := strings.TrimRight(deployment[:room-nameDigits-1], "-.")

	return short + "-" + own + "-" + hash
}
