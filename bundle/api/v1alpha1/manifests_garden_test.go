//go:build garden

package v1alpha1_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
)

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// apply sends a manifest as `kubectl apply --server-side --validate=strict` does, and removes the object when the test ends.
func apply(t *testing.T, object *unstructured.Unstructured) error {
	t.Helper()
	plural := strings.ToLower(object.GetKind()) + "s"
	objects := dynamic.NewForConfigOrDie(api).Resource(v1alpha1.GroupVersion.WithResource(plural))
	text, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	_, err = objects.Patch(t.Context(), object.GetName(), "application/apply-patch+yaml", text,
		metav1.PatchOptions{FieldManager: "test", FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		t.Cleanup(func() { bundletest.Delete(t, bundletest.Client(t, api), object.DeepCopy()) })
	}
	return err
}

// TestManifestsOfRukpak applies manifests as rukpak documents them, for each source and both kinds.
func TestManifestsOfRukpak(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "rukpak", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]bool{}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for document := range strings.SplitSeq(string(text), "\n---\n") {
				object := read(t, document)
				if err := apply(t, object); err != nil {
					t.Errorf("rejected: %v\n%s", err, document)
				}
				for _, fields := range [][]string{{"spec", "source", "type"}, {"spec", "template", "spec", "source", "type"}} {
					if name, found, _ := unstructured.NestedString(object.Object, fields...); found {
						sources[object.GetKind()+" "+name] = true
					}
				}
			}
		})
	}
	for _, kind := range []string{v1alpha1.KindBundle, v1alpha1.KindBundleDeployment} {
		for _, source := range []v1alpha1.SourceType{
			v1alpha1.SourceTypeImage, v1alpha1.SourceTypeGit, v1alpha1.SourceTypeHTTP, v1alpha1.SourceTypeConfigMaps, v1alpha1.SourceTypeUpload,
		} {
			if !sources[kind+" "+string(source)] {
				t.Errorf("no manifest of a %s with the source %s", kind, source)
			}
		}
	}
}

// TestTypedObjects creates objects from Go types, whose empty fields are encoded differently than in manifests.
func TestTypedObjects(t *testing.T) {
	clusterClient := client.WithFieldValidation(bundletest.Client(t, api), metav1.FieldValidationStrict)
	source := v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{}}
	named := metav1.ObjectMeta{Name: "typed"}
	for _, object := range []client.Object{
		&v1alpha1.Bundle{ObjectMeta: named, Spec: v1alpha1.BundleSpec{ProvisionerClassName: "a", Source: source}},
		&v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "typed-git"}, Spec: v1alpha1.BundleSpec{
			ProvisionerClassName: "a",
			Source: v1alpha1.BundleSource{Type: v1alpha1.SourceTypeGit, Git: &v1alpha1.GitSource{
				Repository: "https://example.com/a.git", Ref: v1alpha1.GitRef{Branch: "main"},
			}},
		}},
		&v1alpha1.BundleDeployment{ObjectMeta: named, Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: "a", Template: v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: "a", Source: source}},
		}},
	} {
		if err := clusterClient.Create(t.Context(), object); err != nil {
			t.Errorf("%T: %v", object, err)
			continue
		}
		bundletest.Delete(t, clusterClient, object)
	}
}

func TestPrinterColumns(t *testing.T) {
	clients := dynamic.NewForConfigOrDie(api)
	definitions := clients.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for name, want := range map[string]struct{ columns, wide, short string }{
		"bundles.core.rukpak.io":           {"Type Phase Age", "Provisioner Digest Resolved Source", ""},
		"bundledeployments.core.rukpak.io": {"Active Bundle Install State Age", "Provisioner", "bd bds"},
	} {
		definition, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		short, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "acceptedNames", "shortNames")
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		columns, _, _ := unstructured.NestedSlice(versions[0].(map[string]any), "additionalPrinterColumns")
		var usual, wide []string
		for _, column := range columns {
			fields := column.(map[string]any)
			if fields["priority"] == nil {
				usual = append(usual, fields["name"].(string))
			} else {
				wide = append(wide, fields["name"].(string))
			}
		}
		got := struct{ columns, wide, short string }{strings.Join(usual, " "), strings.Join(wide, " "), strings.Join(short, " ")}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}
