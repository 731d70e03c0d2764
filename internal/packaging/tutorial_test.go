package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTutorialValues renders the chart with the values of the tutorial on production, and checks that the tutorial creates each
// Secret and ConfigMap that these values name.
func TestTutorialValues(t *testing.T) {
	t.Parallel()

	page, err := os.ReadFile(filepath.Join(resourcesFolder, "..", "docs", "tutorials", "production.md"))
	if err != nil {
		t.Fatal(err)
	}

	values := regexp.MustCompile("(?s)```yaml\n(# values.yaml\n.*?)```").FindSubmatch(page)
	if values == nil {
		t.Fatal("the page has no values.yaml")
	}

	objects, err := render(string(values[1]))
	if err != nil {
		t.Fatal(err)
	}

	for _, kind := range []string{"Deployment", "Ingress", "NetworkPolicy", "PodDisruptionBudget", "PrometheusRule", "ServiceMonitor"} {
		if len(names(objects, kind)) == 0 {
			t.Errorf("the chart has no %s with the values of the tutorial", kind)
		}
	}

	created := []string{"broker-example-com"} // the certificate, which readers have
	for _, match := range regexp.MustCompile(`create (?:secret generic|configmap) (\S+)`).FindAllSubmatch(page, -1) {
		created = append(created, string(match[1]))
	}

	var named []string
	for _, match := range regexp.MustCompile(`(?:secret|secretName|configMap|tlsSecretName): ([\w-]+)`).FindAllSubmatch(values[1], -1) {
		named = append(named, string(match[1]))
	}

	slices.Sort(created)
	slices.Sort(named)

	if diff := cmp.Diff(created, slices.Compact(named)); diff != "" {
		t.Errorf("Secrets and ConfigMaps of the values: -created +named\n%s", diff)
	}
}
