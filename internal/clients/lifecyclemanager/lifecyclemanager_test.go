package lifecyclemanager

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

func runtimeInstance() environment.Instance {
	return environment.Instance{
		ID: "an instance", RuntimeID: "R-1", PlanID: "plan-id", PlanName: "aws", GlobalAccountID: "account", SubAccountID: "-", Provider: "aws",
		Region: "eu-central-1", ShootName: "c-1",
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()

	objects, err := ObjectsOf(runtimeInstance(), Settings{
		Template: "apiVersion: operator.kyma-project.io/v1beta1\nkind: Kyma\nmetadata: {name: template, namespace: elsewhere, uid: x, labels: {own: label}}\n" +
			"spec: {channel: regular, sync: {enabled: true}, modules: [{name: old}]}\nstatus: {state: Ready}",
		Channel: "fast", Modules: []Module{{Name: "eventing", Channel: "slow", CustomResourcePolicy: "Ignore"}},
	}, "kcp-system", "example.com")
	if err != nil {
		t.Fatal(err)
	}

	if got := []string{objects.Secret.String(), objects.Kyma.String(), objects.Kyma.path(), objects.Secret.path(), objects.Channel()}; !cmp.Equal(got, []string{
		"secrets.v1/elsewhere/kubeconfig-r-1", "kymas.v1beta1.operator.kyma-project.io/elsewhere/r-1",
		"/apis/operator.kyma-project.io/v1beta1/namespaces/elsewhere/kymas/r-1", "/api/v1/namespaces/elsewhere/secrets/kubeconfig-r-1", "fast",
	}) {
		t.Errorf("got %v", got)
	}

	want := `{
  "apiVersion": "operator.kyma-project.io/v1beta1",
  "kind": "Kyma",
  "metadata": {
    "annotations": {
      "skr-domain": "c-1.example.com"
    },
    "labels": {
      "kyma-project.io/broker-plan-id": "plan-id",
      "kyma-project.io/broker-plan-name": "aws",
      "kyma-project.io/global-account-id": "account",
      "kyma-project.io/instance-id": "sha256-7bc0579751774d6d2d636d7e704e8c69",
      "kyma-project.io/provider": "aws",
      "kyma-project.io/region": "eu-central-1",
      "kyma-project.io/runtime-id": "R-1",
      "kyma-project.io/shoot-name": "c-1",
      "kyma-project.io/subaccount-id": "sha256-3973e022e93220f9212c18d0d0c543ae",
      "operator.kyma-project.io/kyma-name": "r-1",
      "operator.kyma-project.io/managed-by": "lifecycle-manager",
      "own": "label"
    },
    "name": "r-1",
    "namespace": "elsewhere"
  },
  "spec": {
    "channel": "fast",
    "modules": [
      {
        "channel": "slow",
        "customResourcePolicy": "Ignore",
        "name": "eventing"
      }
    ],
    "sync": {
      "enabled": true
    }
  }
}`

	got, err := json.MarshalIndent(objects.kymaObject(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestDefaultsOfObjects(t *testing.T) {
	t.Parallel()

	objects, err := ObjectsOf(runtimeInstance(), Settings{}, "kcp-system", "")
	if err != nil {
		t.Fatal(err)
	}

	if _, set := objects.kymaObject()["spec"].(map[string]any)["modules"]; set || objects.Channel() != "" ||
		objects.Kyma.String() != "kymas.v1beta2.operator.kyma-project.io/kcp-system/r-1" {
		t.Errorf("got %v", objects.kymaObject())
	}

	invalid := runtimeInstance()
	invalid.RuntimeID = "a/b"

	if _, err := ObjectsOf(invalid, Settings{}, "kcp-system", ""); !failure.Is(err, failure.Permanent) {
		t.Errorf("a runtime whose ID is no name: %v", err)
	}

	if _, err := ObjectsOf(runtimeInstance(), Settings{Template: "kind: Kyma"}, "kcp-system", ""); !failure.Is(err, failure.Permanent) ||
		!strings.Contains(err.Error(), "the Kyma template of plan aws must have a kind, and an apiVersion with a group") {
		t.Errorf("an invalid template: %v", err)
	}
}

func TestParseTemplate(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"- a":                                    "is not a Kubernetes object in YAML format",
		"":                                       "is not a Kubernetes object in YAML format",
		"{":                                      "is not a Kubernetes object in YAML format",
		"{kind: Kyma}":                           "must have a kind, and an apiVersion with a group",
		"{apiVersion: v1, kind: Kyma}":           "must have a kind, and an apiVersion with a group",
		"{apiVersion: a/b/v1, kind: Kyma}":       "must have a kind, and an apiVersion with a group",
		"{apiVersion: a.io/v1, kind: Kyma/../x}": "must have a kind, and an apiVersion with a group",
		"{apiVersion: a.io/v1, kind: Kyma, metadata: {namespace: A}}":                "has an invalid namespace",
		"{apiVersion: a.io/v1, kind: Kyma, metadata: []}":                            "has metadata that is not an object",
		"{apiVersion: a.io/v1, kind: Kyma, spec: 7}":                                 "has a spec that is not an object",
		"{apiVersion: a.io/v1, kind: Kyma, metadata: {labels: {a: 1}}}":              "has labels that are not strings",
		"{apiVersion: a.io/v1, kind: Kyma, metadata: {annotations: 1}}":              "has annotations that are not strings",
		"{apiVersion: a.io/v1, kind: Kyma, metadata: {finalizers: [x]}, status: {}}": "",
	} {
		template, err := ParseTemplate(text)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}

		if _, set := template.Object["status"]; err == nil && (set || len(template.GetFinalizers()) > 0) {
			t.Errorf("%s: the template has %v", text, template.Object)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]Status{
		`{}`: {"", true, ""},
		`{"metadata": {"generation": 2}, "status": {"state": "Ready", "conditions": [{"observedGeneration": 1}]}}`:                            {Ready, false, ""},
		`{"metadata": {"generation": 2}, "status": {"state": "Ready", "conditions": [{"observedGeneration": 1}, {"observedGeneration": 2}]}}`: {Ready, true, ""},
		`{"metadata": {"generation": 2}, "status": {"state": "Ready"}}`:                                                                       {Ready, true, ""},
		`{"status": {"state": "Error", "lastOperation": {"operation": "no space"}}}`:                                                          {Error, true, "no space"},
		`{"status": {"state": "Error", "modules": [{"name": "a", "state": "Ready"}, {"name": "b", "state": "Error", "message": "m"}]}}`:       {Error, true, "module b is in state Error: m"},
	} {
		if got, err := decodeStatus([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}
