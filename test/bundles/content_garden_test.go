//go:build garden

package bundles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
)

// version is the name of an annotation that all installed objects have.
const version = "version"

func discarded() *log.Logger { return log.New(io.Discard, "", 0) }

func newObject() *unstructured.Unstructured { return &unstructured.Unstructured{} }

func documents(text string) []string { return strings.Split(text, "\n---\n") }

// manifests returns the objects of a version: some that all versions contain, and one that only this version contains. One of them
// is a ClusterRole, which is applied before the others.
func (f *fixture) manifests(number string) fstest.MapFS {
	configMap := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%s, namespace: default, annotations: {version: %q}}\ndata: {version: %q}\n",
			f.name, name, number, number)
	}

	return fstest.MapFS{
		"manifests/role.yaml": {Data: fmt.Appendf(nil, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"+
			"metadata: {name: %s, annotations: {version: %q}}\nrules: []\n", f.name, number)},
		"manifests/objects.yaml": {Data: []byte(configMap("first") + "---\n" + configMap("second") + "---\n" + configMap("only-"+number))},
	}
}

// invalid returns a version with an object that the API server rejects after it has accepted the ClusterRole.
func (f *fixture) invalid(number string) fstest.MapFS {
	files := f.manifests(number)
	files["manifests/invalid.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-invalid, namespace: default}\ndata: {\"not a key\": \"\"}\n", f.name)}

	return files
}

// operator returns a bundle in the registry+v1 format.
func (f *fixture) operator() fstest.MapFS {
	return fstest.MapFS{
		"metadata/annotations.yaml": {Data: []byte("annotations: {operators.operatorframework.io.bundle.package.v1: " + f.name + "}\n")},
		"manifests/csv.yaml": {Data: []byte(strings.ReplaceAll(`apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: NAME.v1}
spec:
  installModes: [{type: AllNamespaces, supported: true}]
  install:
    strategy: deployment
    spec:
      clusterPermissions: [{serviceAccountName: NAME, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}]
      deployments:
        - name: NAME
          spec:
            selector: {matchLabels: {app: NAME}}
            template:
              metadata: {labels: {app: NAME}}
              spec: {serviceAccountName: NAME, containers: [{name: main, image: registry.example.com/main:1}]}
`, "NAME", f.name))},
		"manifests/crd.yaml": {Data: []byte(strings.ReplaceAll(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.NAME.example.com}
spec:
  group: NAME.example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, "NAME", f.name))},
	}
}

// startRegistry starts a registry with two addresses: counted is for the bundler, whose requests are points, and plain is for the
// test.
func (f *fixture) startRegistry() (counted, plain string) {
	handler := registry.New(registry.Logger(discarded()))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.gate.pass("registry " + r.Method) {
			panic(http.ErrAbortHandler)
		}

		handler.ServeHTTP(w, r)
	}))
	f.Cleanup(server.Close)

	direct := httptest.NewServer(handler)
	f.Cleanup(direct.Close)

	return server.Listener.Addr().String(), direct.Listener.Addr().String()
}

// pack returns an archive that contains files.
func (f *fixture) pack(files fstest.MapFS) []byte {
	f.Helper()

	var packed bytes.Buffer
	if err := archive.Pack(f.Context(), files, &packed); err != nil {
		f.Fatal(err)
	}

	return packed.Bytes()
}

// image pushes files as an artifact with the given tag, and returns a source that refers to this tag.
func (f *fixture) image(tag string, files fstest.MapFS) v1alpha1.BundleSource {
	f.Helper()

	repository, err := remote.NewRepository(f.pushes + "/team/app")
	if err != nil {
		f.Fatal(err)
	}

	repository.PlainHTTP = true

	layer, err := oras.PushBytes(f.Context(), repository, ocispec.MediaTypeImageLayerGzip, f.pack(files))
	if err != nil {
		f.Fatal(err)
	}

	empty := ocispec.DescriptorEmptyJSON
	if _, err := oras.PushBytes(f.Context(), repository, empty.MediaType, empty.Data); err != nil {
		f.Fatal(err)
	}

	manifest, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: empty, Layers: []ocispec.Descriptor{layer},
	})
	if err != nil {
		f.Fatal(err)
	}

	pushed := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(manifest), Size: int64(len(manifest))}
	if err := repository.PushReference(f.Context(), pushed, bytes.NewReader(manifest), tag); err != nil {
		f.Fatal(err)
	}

	return v1alpha1.BundleSource{Type: v1alpha1.SourceTypeImage, Image: &v1alpha1.ImageSource{Ref: f.registry + "/team/app:" + tag}}
}
