package spec_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()

	const (
		ordered = `{"version": "1.24.0", "profile": "Production", "conflictStrategy": "Merge",
			"configuration": [{"key": "domain", "value": "example.com"}, {"key": "token", "value": "hush", "secret": true}],
			"components": [
				{"component": "istio", "namespace": "istio-system", "sourceURL": "https://example.com", "conflictStrategy": "Replace",
					"configuration": [{"key": "password", "value": "hush", "secret": true}, {"key": "replicas", "value": "2", "secret": false}]},
				{"component": "compass-runtime-agent", "namespace": "kyma-system"}]}`
		public = `{"version": "1.24.0", "profile": "Production", "conflictStrategy": "Merge",
			"configuration": [{"key": "domain", "value": "example.com"}, {"key": "token", "value": "", "secret": true}],
			"components": [
				{"component": "istio", "namespace": "istio-system", "sourceURL": "https://example.com", "conflictStrategy": "Replace",
					"configuration": [{"key": "password", "value": "", "secret": true}, {"key": "replicas", "value": "2", "secret": false}]},
				{"component": "compass-runtime-agent", "namespace": "kyma-system"}]}`
	)

	var (
		order spec.Kyma
		want  any
	)

	if err := json.Unmarshal([]byte(ordered), &order); err != nil {
		t.Fatal(err)
	}

	if err := json.Unmarshal([]byte(public), &want); err != nil {
		t.Fatal(err)
	}

	text, err := json.Marshal(order.WithoutSecrets())
	if err != nil {
		t.Fatal(err)
	}

	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("all values except secrets must be returned as ordered: -want +got:\n%s", diff)
	}

	if value := order.Configuration[1].Value; value != "hush" {
		t.Errorf("the order itself must still contain its secret: %q", value)
	}

	if got := (*spec.Kyma)(nil).WithoutSecrets(); got != nil {
		t.Errorf("want nil without Kyma: got %+v", got)
	}
}
