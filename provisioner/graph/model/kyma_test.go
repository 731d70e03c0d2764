package model_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

func TestKymaConfigOf(t *testing.T) {
	t.Parallel()

	const (
		ordered = `{"version": "1.24.0", "profile": "Production", "conflictStrategy": "Merge",
			"configuration": [{"key": "domain", "value": "example.com"}, {"key": "token", "value": "hush", "secret": true}],
			"components": [
				{"component": "istio", "namespace": "istio-system", "sourceURL": "https://example.com", "conflictStrategy": "Replace",
					"configuration": [{"key": "password", "value": "hush", "secret": true}, {"key": "replicas", "value": "2", "secret": false}]},
				{"component": "compass-runtime-agent", "namespace": "kyma-system"}]}`
		told = `{"version": "1.24.0", "profile": "Production",
			"configuration": [{"key": "domain", "value": "example.com"}, {"key": "token", "value": "", "secret": true}],
			"components": [
				{"component": "istio", "namespace": "istio-system", "sourceURL": "https://example.com",
					"configuration": [{"key": "password", "value": "", "secret": true}, {"key": "replicas", "value": "2", "secret": false}]},
				{"component": "compass-runtime-agent", "namespace": "kyma-system"}]}`
	)

	var (
		order model.KymaConfigInput
		want  any
	)

	if err := json.Unmarshal([]byte(ordered), &order); err != nil {
		t.Fatal(err)
	}

	if err := json.Unmarshal([]byte(told), &want); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(want, any(generic(t, model.KymaConfigOf(&order)))); diff != "" {
		t.Errorf("all is told as it was ordered but secrets: -want +got:\n%s", diff)
	}

	if value := order.Configuration[1].Value; value != "hush" {
		t.Errorf("the order itself has lost its secret: %q", value)
	}

	if got := model.KymaConfigOf(nil); got != nil {
		t.Errorf("without Kyma there is nothing to tell: got %+v", got)
	}
}
