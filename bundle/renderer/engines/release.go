package engines

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/environment-broker/environment-broker/bundle/format"
	"github.com/environment-broker/environment-broker/bundle/renderer"
	"github.com/environment-broker/environment-broker/internal/manifest"
)

// Annotations that Helm defines for hooks and for objects that must not be deleted.
const (
	hookAnnotation   = "helm.sh/hook"
	policyAnnotation = "helm.sh/resource-policy"
)

// renderChart returns the objects of a release. It renders the chart twice and fails if the results differ: installed objects are
// compared with a new rendering again and again, so equal inputs must give equal results.
func renderChart(files []file, release renderer.Release) ([]*unstructured.Unstructured, error) {
	first, err := renderOnce(files, release)
	if err != nil {
		return nil, err
	}

	second, err := renderOnce(files, release)
	if err != nil {
		return nil, err
	}

	if object := differing(first, second); object != nil {
		return nil, fmt.Errorf("%s %s differs each time the chart is rendered: set the values for which the chart generates "+
			"random strings, certificates or times", object.GetKind(), object.GetName())
	}

	return first, nil
}

// differing returns the first object that is not the same in both lists, or nil.
func differing(first, second []*unstructured.Unstructured) *unstructured.Unstructured {
	for i, object := range first {
		if i >= len(second) || !reflect.DeepEqual(object, second[i]) {
			return object
		}
	}

	if len(second) > len(first) {
		return second[len(first)]
	}

	return nil
}

func renderOnce(files []file, release renderer.Release) ([]*unstructured.Unstructured, error) {
	loaded, err := loadChart(files)
	if err != nil {
		return nil, err
	}

	values, err := chartutil.ReadValues([]byte(release.Values))
	if err != nil {
		return nil, fmt.Errorf("the values are not a YAML map: %w", err)
	}

	capabilities, err := capabilitiesOf(release)
	if err != nil {
		return nil, err
	}

	if wanted := loaded.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, capabilities.KubeVersion.Version) {
		return nil, fmt.Errorf("the chart requires Kubernetes %s, but the target has %s", wanted, capabilities.KubeVersion.Version)
	}

	// This removes the charts that are disabled by the conditions and tags in the values.
	if err := chartutil.ProcessDependenciesWithMerge(loaded, values); err != nil {
		return nil, fmt.Errorf("resolving the dependencies of the chart: %w", err)
	}

	// Disable Helm's own validation, which would fetch schemas from files and servers that the chart names.
	complete, err := chartutil.ToRenderValuesWithSchemaValidation(loaded, values,
		chartutil.ReleaseOptions{Name: release.Name, Namespace: release.Namespace, Revision: 1, IsInstall: true}, capabilities, true)
	if err != nil {
		return nil, fmt.Errorf("preparing the values: %w", err)
	}

	merged, err := complete.Table("Values")
	if err != nil {
		return nil, fmt.Errorf("reading the merged values: %w", err)
	}

	if err := validate(loaded, merged); err != nil {
		return nil, err
	}

	rendered, err := engine.Engine{}.Render(loaded, complete)
	if err != nil {
		return nil, fmt.Errorf("rendering the templates: %w", err)
	}

	return objectsOf(loaded, rendered, release)
}

// capabilitiesOf returns the chart's .Capabilities: the Kubernetes version of the target cluster, and the API versions of
// Kubernetes itself, followed by the API versions that the release adds.
func capabilitiesOf(release renderer.Release) (*chartutil.Capabilities, error) {
	version, err := chartutil.ParseKubeVersion(release.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("the Kubernetes version %q is not valid: %w", release.KubeVersion, err)
	}

	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	capabilities.APIVersions = slices.Concat(capabilities.APIVersions, release.APIVersions)

	return capabilities, nil
}

// objectsOf returns the objects in crds/ and in the rendered templates.
func objectsOf(loaded *chart.Chart, rendered map[string]string, release renderer.Release) (objects []*unstructured.Unstructured, err error) {
	if !release.SkipCRDs {
		if objects, err = definitionsOf(loaded); err != nil {
			return nil, err
		}
	}

	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if base := path.Base(name); base == "NOTES.txt" || strings.HasPrefix(base, "_") {
			continue
		}

		found, err := wantedOf(rendered[name], release.SkipHooks)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		objects = append(objects, found...)
	}

	if len(objects) == 0 {
		return nil, errors.New("the chart renders no objects with these values")
	}

	return objects, format.Distinct(objects)
}

// definitionsOf returns the objects in the crds/ folders of the chart and its dependencies, marked so that they stay when the
// release is removed.
func definitionsOf(loaded *chart.Chart) (objects []*unstructured.Unstructured, err error) {
	for _, definition := range loaded.CRDObjects() {
		found, err := manifest.Decode(definition.File.Data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", definition.Filename, err)
		}

		for _, object := range found {
			keep(object)
		}

		objects = append(objects, found...)
	}

	return objects, nil
}

// wantedOf returns the objects of a rendered template that must be installed.
func wantedOf(rendered string, skipHooks bool) (objects []*unstructured.Unstructured, err error) {
	found, err := manifest.Decode([]byte(rendered))
	if err != nil {
		return nil, err
	}

	for _, object := range found {
		wanted, err := isWanted(object, skipHooks)
		if err != nil {
			return nil, err
		}

		if wanted {
			objects = append(objects, object)
		}
	}

	return objects, nil
}

// keep marks an object so that it stays when the release is removed, unless the object already has a resource policy.
func keep(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}

	if annotations[policyAnnotation] == "" {
		annotations[policyAnnotation] = "keep"
		object.SetAnnotations(annotations)
	}
}

// isWanted reports whether an object must be installed. Helm tests and, if skipHooks is set, all hooks are left out. Otherwise a
// hook is an error, because nothing would run it.
func isWanted(object *unstructured.Unstructured, skipHooks bool) (bool, error) {
	hook := object.GetAnnotations()[hookAnnotation]

	switch {
	case hook == "":
		return true, nil
	case skipHooks, isTest(hook):
		return false, nil
	default:
		return false, fmt.Errorf("%s %s is a hook (%s), and hooks are not run: disable it through the chart's values, or set hooks: skip in spec.config",
			object.GetKind(), object.GetName(), hook)
	}
}

// isTest reports whether all events of a hook are events of `helm test`.
func isTest(hook string) bool {
	for event := range strings.SplitSeq(hook, ",") {
		switch strings.TrimSpace(event) {
		case "test", "test-success", "test-failure":
		default:
			return false
		}
	}

	return true
}

// normalized converts values to the types that encoding/json decodes to.
func normalized(values map[string]any) (any, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}

	var result any

	err = json.Unmarshal(text, &result)

	return result, err
}
