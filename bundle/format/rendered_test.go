package format_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/bundle/format"
	"github.com/environment-broker/environment-broker/bundle/renderer"
	"github.com/environment-broker/environment-broker/bundle/renderer/engines"
)

// TestMain calls engines.Main, because renderers start this test binary.
func TestMain(m *testing.M) {
	engines.Main()
	os.Exit(m.Run())
}

// golden compares a text with a golden file.
func golden(t *testing.T, file, got string) {
	t.Helper()

	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("reading the golden file, which -update writes: %v", err)
	}

	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHelm checks a chart, and renders it with several values.
func TestHelm(t *testing.T) {
	folder := filepath.Join("testdata", "helm", "shop")
	under, bundle := renderer.New(renderer.DefaultOptions()), os.DirFS(folder)

	converted, err := format.Helm{Renderer: under}.Convert(t.Context(), bundle)
	if err != nil || converted != bundle {
		t.Errorf("a chart is not converted: %v", err)
	}

	for name, release := range map[string]renderer.Release{
		"default": {},
		"values":  {Values: "replicas: 3\nresources: {limits: {memory: 64Mi}}\ncache: {enabled: false}\n", APIVersions: []string{"monitoring.coreos.com/v1"}},
		"no-crds": {SkipCRDs: true, Values: `{"cache":{"size":128}}`},
	} {
		t.Run(name, func(t *testing.T) {
			release.Name, release.Namespace, release.KubeVersion = "spring", "sales", "v1.36.0"

			objects, err := under.Chart(t.Context(), bundle, release)
			if err != nil {
				t.Fatal(err)
			}

			var text bytes.Buffer

			for _, object := range objects {
				one, err := yaml.Marshal(object.Object)
				if err != nil {
					t.Fatal(err)
				}

				fmt.Fprintf(&text, "---\n%s", one)
			}

			golden(t, filepath.Join("testdata", "helm", name+".golden.yaml"), text.String())
		})
	}
}

// TestKustomize converts a kustomization with an overlay.
func TestKustomize(t *testing.T) {
	under := format.Kustomize{Renderer: renderer.New(renderer.DefaultOptions())}

	converted, err := under.Convert(t.Context(), os.DirFS(filepath.Join("testdata", "kustomize", "shop")))
	if err != nil {
		t.Fatal(err)
	}

	text, err := fs.ReadFile(converted, "manifests/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}

	golden(t, filepath.Join("testdata", "kustomize", "plain.golden.yaml"), string(text))
}

// TestBundlesOfOtherFormats passes bundles in other formats to each format.
func TestBundlesOfOtherFormats(t *testing.T) {
	plain, under := files(map[string]string{"manifests/a.yaml": configMap}), renderer.New(renderer.DefaultOptions())

	if _, err := (format.Helm{Renderer: under}).Convert(t.Context(), plain); err == nil || !strings.Contains(err.Error(), "has no chart") {
		t.Error(err)
	}

	if _, err := (format.Kustomize{Renderer: under}).Convert(t.Context(), plain); err == nil || !strings.Contains(err.Error(), "kustomization.yaml") {
		t.Error(err)
	}

	if _, err := (format.Kustomize{Renderer: under}).Convert(t.Context(), fstest.MapFS{}); err == nil {
		t.Error("an empty bundle is a kustomization")
	}
}
