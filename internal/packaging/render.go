package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// namespace is the release namespace with which charts are rendered.
const namespace = "environments"

// yamlBuffer is the number of bytes that the decoder examines to distinguish JSON from YAML.
const yamlBuffer = 4096

// chartFiles returns the chart's files, keyed by their paths in the chart folder.
func chartFiles(resources fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}

	err := fs.WalkDir(resources, chartFolder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		files[strings.TrimPrefix(path, chartFolder+"/")], err = fs.ReadFile(resources, path)

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}

	return files, nil
}

// renderChart renders a chart with the given YAML values for the name and the namespace of a release, and checks the values as `helm
// install` does. It fails if a template accesses a missing value.
func renderChart(contents map[string][]byte, release types.NamespacedName, values string) ([]*unstructured.Unstructured, error) {
	files := make([]*loader.BufferedFile, 0, len(contents))
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		files = append(files, &loader.BufferedFile{Name: name, Data: contents[name]})
	}

	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("loading the chart: %w", err)
	}

	parsed, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, fmt.Errorf("reading the values: %w", err)
	}

	complete, err := chartutil.ToRenderValues(loaded, parsed,
		chartutil.ReleaseOptions{Name: release.Name, Namespace: release.Namespace, Revision: 1, IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("checking the values: %w", err)
	}

	rendered, err := engine.Engine{Strict: true}.Render(loaded, complete)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", err)
	}

	var objects []*unstructured.Unstructured

	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}

		found, err := parse([]byte(rendered[name]))
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", name, err)
		}

		objects = append(objects, found...)
	}

	return objects, nil
}

// parse returns the Kubernetes objects in a YAML stream.
func parse(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured

	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), yamlBuffer); ; {
		var object unstructured.Unstructured

		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}

		if err != nil {
			return nil, fmt.Errorf("decoding an object: %w", err)
		}

		if len(object.Object) > 0 {
			objects = append(objects, &object)
		}
	}
}
