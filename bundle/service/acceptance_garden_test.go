//go:build garden

package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"oras.land/oras-go/v2/registry/remote"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/archive"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	"github.com/environment-broker/environment-broker/bundle/content"
	"github.com/environment-broker/environment-broker/bundle/service"
	"github.com/environment-broker/environment-broker/test/apiserver"
)

// bundleFiles returns a bundle in a format, with the ConfigMap that it installs. Each bundle has its own objects.
func bundleFiles(format, id, namespace string) (map[string]string, client.ObjectKey) {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + id + ", namespace: " + namespace + "}\ndata: {key: plain}\n"

	switch format {
	case "registry":
		return map[string]string{
			"metadata/annotations.yaml": "annotations: {operators.operatorframework.io.bundle.package.v1: " + id + "}\n",
			"manifests/csv.yaml": "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: " + id + "}\n" +
				"spec:\n  installModes: [{type: AllNamespaces, supported: true}]\n  install:\n    spec:\n" +
				"      permissions: [{serviceAccountName: operator, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}]\n",
			"manifests/object.yaml": object,
		}, client.ObjectKey{Namespace: id + "-system", Name: id}
	case "helm":
		return map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n", "values.yaml": "key: default\n",
			"templates/a.yaml": strings.ReplaceAll(strings.ReplaceAll(object, id, "{{ .Release.Name }}"), "key: plain", "key: {{ .Values.key }}"),
		}, client.ObjectKey{Namespace: namespace, Name: id}
	case "kustomize":
		return map[string]string{
			"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": object,
		}, client.ObjectKey{Namespace: namespace, Name: id}
	default:
		return map[string]string{"manifests/a.yaml": object}, client.ObjectKey{Namespace: namespace, Name: id}
	}
}

// origins are servers of bundles in this process.
type origins struct {
	*testing.T
	client.Client

	namespace string
	registry  *httptest.Server
	git, http string
	archives  map[string][]byte
}

func newOrigins(t *testing.T, namespace string) *origins {
	o := &origins{T: t, Client: bundletest.Client(t, api), namespace: namespace, archives: map[string][]byte{}}
	o.registry = httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(o.registry.Close)

	archives := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(o.archives[path.Base(r.URL.Path)]) }))
	t.Cleanup(archives.Close)
	o.http = archives.URL

	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}

	o.git = t.TempDir()
	repositories := httptest.NewServer(&cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + o.git, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"},
	})
	t.Cleanup(repositories.Close)
	t.Setenv("GIT_SERVER", repositories.URL)

	return o
}

func (o *origins) packed(files map[string]string) []byte {
	o.Helper()

	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}

	var packed bytes.Buffer
	if err := archive.Pack(o.Context(), tree, &packed); err != nil {
		o.Fatal(err)
	}

	return packed.Bytes()
}

// push pushes an image with one layer and the tag v1.
func (o *origins) push(repository string, layer []byte) {
	o.Helper()

	to, err := remote.NewRepository(repository)
	if err != nil {
		o.Fatal(err)
	}

	to.PlainHTTP = true
	put := func(mediaType string, content []byte) ocispec.Descriptor {
		descriptor := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
		if err := to.Push(o.Context(), descriptor, bytes.NewReader(content)); err != nil {
			o.Fatal(err)
		}

		return descriptor
	}

	manifest := ocispec.Manifest{
		MediaType: ocispec.MediaTypeImageManifest, Config: put(ocispec.MediaTypeImageConfig, []byte("{}")),
		Layers: []ocispec.Descriptor{put(ocispec.MediaTypeImageLayerGzip, layer)},
	}
	manifest.SchemaVersion = 2

	text, err := json.Marshal(manifest)
	if err != nil {
		o.Fatal(err)
	}

	if err := to.Tag(o.Context(), put(ocispec.MediaTypeImageManifest, text), "v1"); err != nil {
		o.Fatal(err)
	}
}

// source publishes a bundle, and returns its source in the form that rukpak's documentation uses.
func (o *origins) source(kind, id string, files map[string]string) string {
	o.Helper()

	switch kind {
	case "image":
		text := o.registry.Listener.Addr().String() + "/bundles/" + id
		o.push(text, o.packed(files))

		return "type: image\nimage: {ref: '" + text + ":v1'}\n"
	case "git":
		folder := filepath.Join(o.git, id)
		for name, text := range files {
			file := filepath.Join(folder, "bundle", name)
			if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
				o.Fatal(err)
			}

			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				o.Fatal(err)
			}
		}

		for _, arguments := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"}, {"commit", "--quiet", "--message=bundle"}} {
			command := exec.CommandContext(o.Context(), "git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com"}, arguments...)...)
			if output, err := command.CombinedOutput(); err != nil {
				o.Fatalf("git %v: %v: %s", arguments, err, output)
			}
		}

		return "type: git\ngit: {repository: '" + os.Getenv("GIT_SERVER") + "/" + id + "/.git', directory: ./bundle, ref: {branch: main}}\n"
	case "http":
		o.archives[id] = o.packed(files)

		return "type: http\nhttp: {url: '" + o.http + "/" + id + "'}\n"
	case "configMaps":
		folders := map[string]map[string]string{}
		for name, text := range files {
			folder := path.Dir(name)
			if folders[folder] == nil {
				folders[folder] = map[string]string{}
			}

			folders[folder][path.Base(name)] = text
		}

		lines := []string{"type: configMaps", "configMaps:"}

		for folder, data := range folders {
			object := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: id + "-" + strings.Trim(folder, ".") + "x"}, Immutable: new(true), Data: data,
			}
			if err := o.Create(o.Context(), object); err != nil {
				o.Fatal(err)
			}

			lines = append(lines, "- {configMap: {name: "+object.Name+"}, path: "+folder+"}")
		}

		return strings.Join(lines, "\n")
	default:
		return "type: upload\nupload: {}\n"
	}
}

// startAll starts a service with all formats, and returns it with its configuration.
func startAll(t *testing.T) (*service.Service, service.Config) {
	t.Helper()

	namespace := bundletest.Namespace(t, api)
	config := settings(t, namespace)
	config.Rendering.Enabled, config.Deployments.Enabled, config.Deployments.TokenFile = true, true, contentToken(t, namespace)
	config.Bundles.HelmClass, config.Bundles.KustomizeClass = "helm-"+namespace, "kustomize-"+namespace
	config.Deployments.HelmClass = config.Bundles.HelmClass

	return start(t, config), config
}

// classesOf returns the classes of the Bundle and of the BundleDeployment for a format.
func classesOf(format string, config service.Config) (bundle, deployment string) {
	switch format {
	case "registry":
		return config.Bundles.RegistryClass, config.Deployments.PlainClass
	case "helm":
		return config.Bundles.HelmClass, config.Deployments.HelmClass
	case "kustomize":
		return config.Bundles.KustomizeClass, config.Deployments.PlainClass
	default:
		return config.Bundles.PlainClass, config.Deployments.PlainClass
	}
}

func indent(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
}

// TestSourcesAndFormats installs a bundle of each format from each source, with manifests in the form of rukpak's documentation, on the cluster
// of the Bundles and on another one.
func TestSourcesAndFormats(t *testing.T) {
	target := apiserver.Run(t).Config // it stops after the service, whose watches would keep it
	replica, config := startAll(t)
	from, uploads := newOrigins(t, config.Namespace), reader(t, config)
	clusters := map[string]client.Client{"hub": from.Client, "target": from.prepare(target)}

	for _, kind := range []string{"image", "git", "http", "configMaps", "upload"} {
		for _, format := range []string{"plain", "registry", "helm", "kustomize"} {
			for place, cluster := range clusters {
				t.Run(kind+" "+format+" "+place, func(t *testing.T) {
					from.T = t
					id := fmt.Sprintf("%s-%s-%s-%s", strings.ToLower(kind[:3]), format[:4], place, config.Namespace[len(config.Namespace)-5:])
					files, installed := bundleFiles(format, id, config.Namespace)
					manifest := manifestOf(id, format, from.source(kind, id, files), config)

					if place == "target" { // an addition to the API of rukpak
						manifest += "  target: {kubeconfigSecretRef: {name: target}}\n"
					}

					deployment := &v1alpha1.BundleDeployment{}
					if err := yaml.UnmarshalStrict([]byte(manifest), deployment); err != nil {
						t.Fatalf("%v:\n%s", err, manifest)
					}

					if err := from.Create(t.Context(), deployment); err != nil {
						t.Fatalf("%v:\n%s", err, manifest)
					}

					if kind == "upload" {
						upload(t, uploads, replica, deployment, from.packed(files))
					}

					reachesInstalled(t, from.Client, deployment)
					from.check(clusters, place, format, installed, deployment)

					if err := from.Delete(t.Context(), deployment); err != nil {
						t.Fatal(err)
					}

					bundletest.Eventually(t, func() string {
						object := &corev1.ConfigMap{}
						if err := cluster.Get(t.Context(), installed, object); !apierrors.IsNotFound(err) && object.DeletionTimestamp == nil {
							return "the object is not removed"
						}

						return ""
					})
				})
			}
		}
	}
}

// prepare creates the namespace of the test on the target and the Secret target with its kubeconfig, and returns a client of it.
func (o *origins) prepare(target *rest.Config) client.Client {
	o.Helper()

	cluster := bundletest.Client(o.T, target)

	if err := cluster.Create(o.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}}); err != nil {
		o.Fatal(err)
	}

	if err := o.Create(o.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "target"},
		Data:       map[string][]byte{"kubeconfig": apiserver.Kubeconfig(o.T, target)},
	}); err != nil {
		o.Fatal(err)
	}

	return cluster
}

// manifestOf returns the manifest of a BundleDeployment in the form of rukpak's documentation.
func manifestOf(id, format, source string, config service.Config) string {
	bundleClass, deploymentClass := classesOf(format, config)
	manifest := "apiVersion: core.rukpak.io/v1alpha1\nkind: BundleDeployment\nmetadata: {name: " + id + "}\nspec:\n" +
		"  provisionerClassName: " + deploymentClass + "\n  template:\n    metadata: {labels: {app: " + id + "}}\n    spec:\n" +
		"      provisionerClassName: " + bundleClass + "\n      source:\n    " + strings.ReplaceAll(indent(source), "\n", "\n    ") + "\n"

	if format == "helm" {
		manifest += "  config:\n    values: |\n      key: configured\n"
	}

	return manifest
}

// check verifies that the object is on the right cluster and not on the other one, and verifies the status of the Bundle.
func (o *origins) check(clusters map[string]client.Client, place, format string, installed client.ObjectKey, deployment *v1alpha1.BundleDeployment) {
	o.Helper()

	want := "plain"
	if format == "helm" {
		want = "configured"
	}

	for name, cluster := range clusters {
		object := &corev1.ConfigMap{}

		err := cluster.Get(o.Context(), installed, object)
		if name == place && (err != nil || object.Data["key"] != want) || name != place && !apierrors.IsNotFound(err) {
			o.Errorf("the object on the %s is %v: %v", name, object.Data, err)
		}
	}

	bundle := &v1alpha1.Bundle{}
	if err := o.Get(o.Context(), client.ObjectKey{Name: deployment.Status.ActiveBundle}, bundle); err != nil ||
		bundle.Status.Phase != v1alpha1.PhaseUnpacked || bundle.Status.ResolvedSource == nil || bundle.Status.ContentURL == "" {
		o.Errorf("the Bundle is %+v: %v", bundle.Status, err)
	}
}

func upload(t *testing.T, uploads *content.Client, replica *service.Service, deployment *v1alpha1.BundleDeployment, packed []byte) {
	t.Helper()

	cluster := bundletest.Client(t, api)
	bundletest.Eventually(t, func() string {
		list := &v1alpha1.BundleList{}
		if err := cluster.List(t.Context(), list, client.MatchingLabels{v1alpha1.LabelOwnerName: deployment.Name}); err != nil || len(list.Items) == 0 {
			return fmt.Sprintf("no Bundle: %v", err)
		}

		if _, err := uploads.Upload(t.Context(), replica.Address(), list.Items[0].Name, bytes.NewReader(packed), int64(len(packed))); err != nil {
			return err.Error()
		}

		return ""
	})
}

func reachesInstalled(t *testing.T, cluster client.Client, deployment *v1alpha1.BundleDeployment) {
	t.Helper()
	bundletest.Eventually(t, func() string {
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err.Error()
		}

		status := deployment.Status

		installed := meta.FindStatusCondition(status.Conditions, v1alpha1.TypeInstalled)
		if status.ObservedGeneration != deployment.Generation || installed == nil || installed.Status != metav1.ConditionTrue ||
			installed.Reason != v1alpha1.ReasonInstallationSucceeded {
			return fmt.Sprintf("not installed: %+v", status.Conditions)
		}

		return ""
	})
}

// TestConfig changes the values of a chart without a new Bundle, then to values that cannot be rendered or installed.
func TestConfig(t *testing.T) {
	_, config := startAll(t)
	from := newOrigins(t, config.Namespace)
	id := "config-" + config.Namespace
	files, installed := bundleFiles("helm", id, config.Namespace)
	files["templates/a.yaml"] = strings.ReplaceAll(files["templates/a.yaml"], "metadata: {", "metadata: {labels: {label: '{{ .Values.label }}'}, ")
	source := v1alpha1.BundleSource{}

	if err := yaml.Unmarshal([]byte(from.source("http", id, files)), &source); err != nil {
		t.Fatal(err)
	}

	deployment := &v1alpha1.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec: v1alpha1.BundleDeploymentSpec{
			ProvisionerClassName: config.Deployments.HelmClass,
			Template:             v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: config.Bundles.HelmClass, Source: source}},
		},
	}
	if err := from.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}

	reachesInstalled(t, from.Client, deployment)

	first, object := deployment.Status.ActiveBundle, &corev1.ConfigMap{}
	change := func(values string) {
		t.Helper()

		patch := fmt.Sprintf(`{"spec":{"config":{"values":%q}}}`, values)
		if err := from.Patch(t.Context(), deployment, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(want string) {
		t.Helper()

		if err := from.Get(t.Context(), installed, object); err != nil || object.Data["key"] != want {
			t.Errorf("the object has %v, want %s: %v", object.Data, want, err)
		}

		if deployment.Status.ActiveBundle != first {
			t.Errorf("the active Bundle is %s, want %s", deployment.Status.ActiveBundle, first)
		}
	}
	holds("default")
	change("key: second\n")
	reachesInstalled(t, from.Client, deployment)
	holds("second")

	for values, want := range map[string][2]string{
		"key: third\nlabel: not valid\n": {v1alpha1.TypeInstalled, "stays installed with its previous config"},
		"- a\n":                          {v1alpha1.TypeHasValidBundle, "the values are not a YAML map"},
	} {
		change(values)
		bundletest.Eventually(t, func() string {
			if err := from.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
				return err.Error()
			}

			found := meta.FindStatusCondition(deployment.Status.Conditions, want[0])
			if found == nil || found.ObservedGeneration != deployment.Generation || !strings.Contains(found.Message, want[1]) {
				return fmt.Sprintf("%+v", found)
			}

			return ""
		})
		holds("second")
	}

	change("key: fourth\n")
	reachesInstalled(t, from.Client, deployment)
	holds("fourth")
}
