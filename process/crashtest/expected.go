package crashtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// checkExpected fails the test unless the run without faults ended as the scenario expects. All other runs are only compared with
// this run, so without this check a scenario that always fails would pass.
func (s Scenario[D]) checkExpected(t *testing.T, got outcome) {
	t.Helper()

	found, err := summarize(got)
	if err != nil {
		t.Fatal(err)
	}

	if diff := gocmp.Diff(s.Expected, found); diff != "" {
		t.Fatalf("the run without faults did not end as the scenario expects, -want +got:\n%s\nthe outcome:\n%s", diff, found)
	}
}

// summarize describes an outcome in YAML: how the operations ended, and the state of the upstreams without empty fields.
func summarize(result outcome) (string, error) {
	summary := map[string]any{}

	var ends []string
	for _, each := range result.Operations {
		end := fmt.Sprintf("%s %s", each.Kind, each.State)
		if len(each.SkippedSteps) > 0 {
			end += ", not completed: " + strings.Join(each.SkippedSteps, ", ")
		}

		ends = append(ends, end)
	}

	encoded, err := json.Marshal(map[string]any{"operations": ends, "afterwards": result.Upstream})
	if err != nil {
		return "", err
	}

	if err := json.Unmarshal(encoded, &summary); err != nil {
		return "", err
	}

	text, err := yaml.Marshal(withoutEmpty(summary))

	return string(text), err
}

// withoutEmpty returns the value without the empty fields of its objects.
func withoutEmpty(value any) any {
	object, ok := value.(map[string]any)
	if !ok {
		return value
	}

	filled := map[string]any{}

	for key, each := range object {
		switch each := withoutEmpty(each).(type) {
		case nil:
		case map[string]any:
			if len(each) > 0 {
				filled[key] = each
			}
		case []any:
			if len(each) > 0 {
				filled[key] = each
			}
		default:
			if each != "" && each != false && each != 0.0 {
				filled[key] = each
			}
		}
	}

	return filled
}
