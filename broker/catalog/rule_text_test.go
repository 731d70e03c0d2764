package catalog_test

import (
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/broker/catalog"
)

// TestPatternsHaveTexts checks that ruleText describes each pattern of parameters.yaml in words. The text of the library
// quotes the pattern and the value, which may be secret.
func TestPatternsHaveTexts(t *testing.T) {
	t.Parallel()

	content, err := os.ReadFile("parameters.yaml")
	if err != nil {
		t.Fatal(err)
	}

	var parameters map[string]any
	if err := yaml.Unmarshal(content, &parameters); err != nil {
		t.Fatal(err)
	}

	found := patterns(parameters)
	if len(found) == 0 {
		t.Fatal("parameters.yaml has no patterns")
	}

	for _, pattern := range found {
		library := (&kind.Pattern{Want: pattern}).LocalizedString(message.NewPrinter(language.English))
		if catalog.PatternText(pattern) == library {
			t.Errorf("ruleText needs a text for the pattern %s", pattern)
		}
	}
}

// patterns returns the values of all "pattern" keywords in a decoded YAML value.
func patterns(value any) (found []string) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if text, ok := field.(string); ok && key == "pattern" {
				found = append(found, text)
			}

			found = append(found, patterns(field)...)
		}
	case []any:
		for _, element := range value {
			found = append(found, patterns(element)...)
		}
	}

	return found
}
