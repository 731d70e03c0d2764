//go:build garden

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
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

// TestManifestsOfRukpak applies manifests from rukpak's documentation, for each source and both kinds.
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

// TestPrinterColumns asks the API server for tables, as kubectl does, and for the short names.
func TestPrinterColumns(t *testing.T) {
	clusterClient := bundletest.Client(t, api)
	source := v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{SHA256: strings.Repeat("0", 64)}}

	bundle := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "in-a-table"}, Spec: v1alpha1.BundleSpec{ProvisionerClassName: "class", Source: source}}
	deployment := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "in-a-table"},
		Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: "class", Template: v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: "class", Source: source}},
		},
	}

	for _, object := range []client.Object{bundle, deployment} {
		if err := clusterClient.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { bundletest.Delete(t, clusterClient, object) })
	}

	bundle.Status = v1alpha1.BundleStatus{Phase: v1alpha1.PhaseUnpacked, Digest: "sha256:1", ResolvedSource: &source}
	deployment.Status = v1alpha1.BundleDeploymentStatus{ActiveBundle: "in-a-table-1", Conditions: []metav1.Condition{
		{Type: v1alpha1.TypeHealthy, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHealthy, LastTransitionTime: metav1.Now()},
		{Type: v1alpha1.TypeInstalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInstallationSucceeded, LastTransitionTime: metav1.Now()},
	}}

	for _, object := range []client.Object{bundle, deployment} {
		if err := clusterClient.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}

	for resource, want := range map[string]struct{ columns, wide, short string }{
		"bundles": {
			"Name=in-a-table Type=upload Phase=Unpacked Age=*",
			`Provisioner=class Digest=sha256:1 Resolved Source={"type":"upload","upload":{"sha256":"` + source.Upload.SHA256 + `"}}`, "",
		},
		"bundledeployments": {"Name=in-a-table Active Bundle=in-a-table-1 Install State=InstallationSucceeded Age=*", "Provisioner=class", "bd bds"},
	} {
		columns, wide := table(t, resource, "in-a-table")
		if got := (struct{ columns, wide, short string }{columns, wide, shortNames(t, resource)}); got != want {
			t.Errorf("%s: got %+v, want %+v", resource, got, want)
		}
	}
}

// table returns the cells of an object's row in the API server's table. The age is replaced by *.
func table(t *testing.T, resource, name string) (usual, wide string) {
	t.Helper()

	clients, err := kubernetes.NewForConfig(api)
	if err != nil {
		t.Fatal(err)
	}

	text, err := clients.RESTClient().Get().AbsPath("apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, resource, name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}

	var found metav1.Table
	if err := json.Unmarshal(text, &found); err != nil || len(found.Rows) != 1 {
		t.Fatalf("%v: %s", err, text)
	}

	var columns [2][]string

	for index, column := range found.ColumnDefinitions {
		cell := fmt.Sprint(found.Rows[0].Cells[index])
		if column.Name == "Age" {
			cell = "*"
		}

		columns[min(column.Priority, 1)] = append(columns[min(column.Priority, 1)], column.Name+"="+cell)
	}

	return strings.Join(columns[0], " "), strings.Join(columns[1], " ")
}

// shortNames returns the short names of a resource in the API server's discovery.
func shortNames(t *testing.T, resource string) string {
	t.Helper()

	clients, err := kubernetes.NewForConfig(api)
	if err != nil {
		t.Fatal(err)
	}

	found, err := clients.Discovery().ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}

	for _, each := range found.APIResources {
		if each.Name == resource {
			return strings.Join(each.ShortNames, " ")
		}
	}

	return resource + " is not served"
}
