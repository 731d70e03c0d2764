package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const (
	resourcesFolder = "../../resources"
	release         = "eb"
	// prefix is the prefix of the names of the objects of the release.
	prefix = "eb-environment-broker"
)

// render renders the chart for the release of the tests.
func render(values string) ([]*unstructured.Unstructured, error) {
	files, err := chartFiles(os.DirFS(resourcesFolder))
	if err != nil {
		return nil, err
	}

	return renderChart(files, types.NamespacedName{Namespace: namespace, Name: release}, values)
}

// example returns the values of resources/chart/examples.
func example(t *testing.T, name string) string {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(resourcesFolder, chartFolder, "examples", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}

	return string(content)
}

// mustRender renders an example with changed values.
func mustRender(t *testing.T, name, changes string) []*unstructured.Unstructured {
	t.Helper()

	objects, err := render(merged(t, example(t, name), changes))
	if err != nil {
		t.Fatal(err)
	}

	return objects
}

// merged returns values in YAML with changes, as `helm install -f values -f changes` does.
func merged(t *testing.T, values, changes string) string {
	t.Helper()

	var into, from map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(values), &into), yaml.Unmarshal([]byte(changes), &from)); err != nil {
		t.Fatal(err)
	}

	text, err := yaml.Marshal(chartutil.CoalesceTables(from, into))
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// find returns the object with the given kind and name, converted to T.
func find[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) T {
	t.Helper()

	var typed T

	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			if err := k8sruntime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true); err != nil {
				t.Fatalf("%s %s: %v", kind, name, err)
			}

			return typed
		}
	}

	t.Fatalf("the chart has no %s %s", kind, name)

	return typed
}

// names returns the names of the objects of the given kind.
func names(objects []*unstructured.Unstructured, kind string) []string {
	found := []string{}

	for _, object := range objects {
		if object.GetKind() == kind {
			found = append(found, object.GetName())
		}
	}

	return found
}

// deployments returns the Deployments by service name.
func deployments(t *testing.T, objects []*unstructured.Unstructured) map[string]appsv1.Deployment {
	t.Helper()

	found := map[string]appsv1.Deployment{}
	for _, name := range names(objects, "Deployment") {
		found[strings.TrimPrefix(name, prefix+"-")] = find[appsv1.Deployment](t, objects, "Deployment", name)
	}

	return found
}
