package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	resourcesFolder = "../../resources"
	release         = "eb"
	namespace       = "environments"
	// prefix begins the names of the objects of the release.
	prefix = "eb-environment-broker"
)

// render renders the chart with the values in YAML, like `helm install`: with its checks of the schema.
func render(values string) ([]*unstructured.Unstructured, error) {
	loaded, err := loader.LoadDir(filepath.Join(resourcesFolder, chartFolder))
	if err != nil {
		return nil, err
	}

	parsed, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}

	complete, err := chartutil.ToRenderValues(loaded, parsed,
		chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}

	rendered, err := engine.Engine{Strict: true}.Render(loaded, complete)
	if err != nil {
		return nil, err
	}

	var objects []*unstructured.Unstructured

	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(name, "NOTES.txt") || strings.HasSuffix(name, ".tpl") {
			continue
		}

		found, err := parse([]byte(rendered[name]))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		objects = append(objects, found...)
	}

	return objects, nil
}

// parse returns the objects of a YAML stream.
func parse(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured

	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		var object unstructured.Unstructured

		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}

		if err != nil {
			return nil, err
		}

		if len(object.Object) > 0 {
			objects = append(objects, &object)
		}
	}
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

// find converts the object of a kind and name to its type.
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

// names returns the names of the objects of a kind.
func names(objects []*unstructured.Unstructured, kind string) []string {
	found := []string{}

	for _, object := range objects {
		if object.GetKind() == kind {
			found = append(found, object.GetName())
		}
	}

	return found
}

// deployments returns the Deployments by service.
func deployments(t *testing.T, objects []*unstructured.Unstructured) map[string]appsv1.Deployment {
	t.Helper()

	found := map[string]appsv1.Deployment{}
	for _, name := range names(objects, "Deployment") {
		found[strings.TrimPrefix(name, prefix+"-")] = find[appsv1.Deployment](t, objects, "Deployment", name)
	}

	return found
}
