package format_test

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/bundle/format"
)

var update = flag.Bool("update", false, "write the golden files")

// manifest converts the bundle and returns the manifest of the result.
func manifest(t *testing.T, bundle fs.FS) string {
	t.Helper()
	converted, err := format.Registry{}.Convert(t.Context(), bundle)
	if err != nil {
		t.Fatal(err)
	}
	text, err := fs.ReadFile(converted, "manifests/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRegistry(t *testing.T) {
	for name, reason := range map[string]string{
		"operator": "permissions are promoted and read namespaces, namespaced objects are moved, a ServiceAccount of the bundle is kept",
		"minimal":  "the install namespace has the name of the package if none is suggested",
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join("testdata", "registry", name)
			got := manifest(t, os.DirFS(folder))
			golden := filepath.Join(folder, "plain.golden.yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("reading the golden file, which -update writes: %v", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s, -want +got:\n%s", reason, diff)
			}
		})
	}
}

// TestRegistryIsDeterministic compares the archives of several conversions, and of one with the same objects in other files.
func TestRegistryIsDeterministic(t *testing.T) {
	bundle := os.DirFS(filepath.Join("testdata", "registry", "operator"))
	packed := func(bundle fs.FS) []byte {
		converted, err := format.Registry{}.Convert(t.Context(), bundle)
		if err != nil {
			t.Fatal(err)
		}
		var archived bytes.Buffer
		if err := archive.Pack(t.Context(), converted, &archived); err != nil {
			t.Fatal(err)
		}
		return archived.Bytes()
	}
	want := packed(bundle)
	for range 20 {
		if !bytes.Equal(want, packed(bundle)) {
			t.Fatal("two conversions of a bundle differ")
		}
	}
	renamed := fstest.MapFS{}
	for from, to := range map[string]string{
		"metadata/annotations.yaml": "metadata/annotations.yaml", "manifests/others.yaml": "manifests/1.yaml",
		"manifests/caches.crd.yaml": "manifests/2.yaml", "manifests/cache-operator.clusterserviceversion.yaml": "manifests/3.yaml",
	} {
		content, err := fs.ReadFile(bundle, from)
		if err != nil {
			t.Fatal(err)
		}
		renamed[to] = &fstest.MapFile{Data: content}
	}
	if !bytes.Equal(want, packed(renamed)) {
		t.Error("the result depends on the names of the files")
	}
}

const (
	annotations = "annotations: {operators.operatorframework.io.bundle.package.v1: a}\n"
	csv         = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: a.v1}\nspec:\n  installModes: [{type: AllNamespaces, supported: true}]\n"
)

// operator returns a bundle with a ClusterServiceVersion, followed by the text more, which contains further fields of its spec,
// or further documents.
func operator(more string) map[string]string {
	return map[string]string{"metadata/annotations.yaml": annotations, "manifests/csv.yaml": csv + more}
}

func TestSuggestedNamespace(t *testing.T) {
	const suggestion = "operatorframework.io/suggested-namespace"
	inCSV := strings.Replace(csv, "{name: a.v1}", "{name: a.v1, annotations: {"+suggestion+": one}}", 1)
	inFile := strings.Replace(annotations, "}", ", "+suggestion+": two}", 1)
	for name, c := range map[string]struct{ annotations, csv, want string }{
		"none":   {annotations, csv, "a-system"},
		"object": {annotations, inCSV, "one"},
		"file":   {inFile, csv, "two"},
		"both":   {inFile, inCSV, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			got := manifest(t, files(map[string]string{"metadata/annotations.yaml": c.annotations, "manifests/csv.yaml": c.csv}))
			if diff := cmp.Diff("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+c.want+"\n", got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBundlesThatAreNotRegistry(t *testing.T) {
	const account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: b, namespace: NS}\n"
	deployment := "  install: {spec: {deployments: [{name: d, spec: {}}DUPLICATE]}}\n"
	without := func(bundle map[string]string, name string) map[string]string {
		delete(bundle, name)
		return bundle
	}
	with := func(bundle map[string]string, name, content string) map[string]string {
		bundle[name] = content
		return bundle
	}
	cases := map[string]struct {
		bundle map[string]string
		want   string
	}{
		"no annotations":     {without(operator(""), "metadata/annotations.yaml"), "has no file metadata/annotations.yaml"},
		"no package":         {with(operator(""), "metadata/annotations.yaml", "annotations: {}"), "bundle.package.v1 is missing"},
		"bad annotations":    {with(operator(""), "metadata/annotations.yaml", "annotations: [a]"), "metadata/annotations.yaml: "},
		"bad namespace":      {with(operator(""), "metadata/annotations.yaml", strings.Replace(annotations, ": a}", ": A_B}", 1)), `the install namespace "A_B-system" is not valid`},
		"no manifests":       {without(operator(""), "manifests/csv.yaml"), "has no manifests folder"},
		"no operator":        {with(operator(""), "manifests/csv.yaml", configMap), "contains no ClusterServiceVersion"},
		"second operator":    {with(operator(""), "manifests/more.yaml", strings.Replace(csv, "a.v1", "a.v2", 1)), "two objects of the kind ClusterServiceVersion, a.v1 and a.v2"},
		"wrong field":        {operator("  install: {spec: {deployments: 1}}\n"), "the ClusterServiceVersion a.v1: "},
		"one namespace only": {with(operator(""), "manifests/csv.yaml", strings.Replace(csv, "supported: true", "supported: false", 1)), "a.v1: it does not support the AllNamespaces install mode"},
		"API service":        {operator("  apiservicedefinitions: {owned: [{name: v1.a}]}\n"), "a.v1: it owns API services"},
		"webhook":            {operator("  webhookdefinitions: [{type: ValidatingAdmissionWebhook}]\n"), "a.v1: it has webhooks"},
		"strategy":           {operator("  install: {strategy: magic}\n"), `the install strategy "magic" is unknown`},
		"kind":               {operator("---\napiVersion: example.com/v1\nkind: Cache\nmetadata: {name: c}\n"), "contains the Cache c, but registry+v1 does not support this kind"},
		"moved together":     {operator(strings.Replace(account, "NS", "one", 1) + strings.Replace(account, "NS", "two", 1)), "become the same object, ServiceAccount a-system/b, in the install namespace"},
		"deployment twice":   {operator(strings.Replace(deployment, "DUPLICATE", ", {name: d, spec: {}}", 1)), "has a second Deployment.apps a-system/d"},
		"nameless":           {operator("  install: {spec: {deployments: [{spec: {}}]}}\n"), "the Deployment has no metadata.name"},
		"no spec":            {operator("  install: {spec: {deployments: [{name: d}]}}\n"), `the deployment "d": it has no spec`},
		"bad template":       {operator("  install: {spec: {deployments: [{name: d, spec: {template: 1}}]}}\n"), `the deployment "d": `},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := format.Registry{}.Convert(t.Context(), files(c.bundle))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got the error %v, want %q", err, c.want)
			}
		})
	}
}

// FuzzRegistry checks that a converted bundle is a plain bundle with an install namespace, and that the conversion is deterministic.
func FuzzRegistry(f *testing.F) {
	folder := filepath.Join("testdata", "registry", "operator")
	full, err := os.ReadFile(filepath.Join(folder, "manifests", "cache-operator.clusterserviceversion.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(annotations), full)
	for _, seed := range []string{csv, csv + "---\n" + configMap, csv + "  install: {spec: {permissions: [{rules: [{verbs: [1]}]}]}}\n", csv + "  install: {spec: {deployments: [{name: d}]}}\n"} {
		f.Add([]byte(annotations), []byte(seed))
	}
	f.Add([]byte("annotations: {a: {b: c}}"), []byte("{}"))
	f.Fuzz(func(t *testing.T, annotations, objects []byte) {
		bundle := fstest.MapFS{"metadata/annotations.yaml": {Data: annotations}, "manifests/a.yaml": {Data: objects}}
		converted, err := format.Registry{}.Convert(t.Context(), bundle)
		if err != nil {
			return
		}
		found, err := format.Objects(converted)
		if err != nil {
			t.Fatalf("the converted bundle is not plain: %v", err)
		}
		if found[0].GetKind() != "Namespace" {
			t.Errorf("the first object is a %s", found[0].GetKind())
		}
		for _, object := range found {
			if namespace := object.GetNamespace(); object.GetKind() == "Deployment" && namespace != found[0].GetName() {
				t.Errorf("%s %s is in the namespace %q", object.GetKind(), object.GetName(), namespace)
			}
		}
		if first, second := manifest(t, bundle), manifest(t, bundle); first != second {
			t.Errorf("two conversions differ: %s", cmp.Diff(first, second))
		}
	})
}
