//go:build garden

package bundles_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/bundletest"
	bundler "github.com/environment-broker/environment-broker/bundle/service"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/installation/bundles"
	"github.com/environment-broker/environment-broker/provisioner/installation/installer"
	"github.com/environment-broker/environment-broker/test/apiserver"
)

// patience is the timeout of each wait.
const patience = 4 * time.Minute

// api is the API server that all tests share. It is the hub, and the cluster of each runtime.
var api *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apiserver.Main(m, &api, apiserver.CRDs))
}

// release maps the sources of components to their manifests.
type release map[string]string

func (r release) Manifests(_ context.Context, source string) ([]installation.ManifestFile, error) {
	text, ok := r[source]
	if !ok {
		return nil, failure.New(failure.Permanent, "no manifests of %q", source)
	}

	return []installation.ManifestFile{{Name: source + ".yaml", Content: []byte(text)}}, nil
}

// kubeconfigs issues kubeconfigs of the API server, and counts them.
type kubeconfigs struct {
	mu     sync.Mutex
	issued []string
}

func (k *kubeconfigs) AdminKubeconfig(_ context.Context, shootName string, _ time.Duration) ([]byte, error) {
	k.mu.Lock()
	k.issued = append(k.issued, shootName)
	k.mu.Unlock()

	return clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: api.Host, CertificateAuthorityData: api.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: api.CertData, ClientKeyData: api.KeyData}},
	})
}

func (k *kubeconfigs) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()

	return len(k.issued)
}

// hub is a bundle provisioner.
type hub struct {
	namespace, class string
	// config has the roles of the Provisioner only.
	config  *rest.Config
	uploads *bundles.Uploads
	stop    func()
}

// startHub starts a bundle provisioner.
func startHub(t *testing.T) *hub {
	t.Helper()

	h := &hub{namespace: bundletest.Namespace(t, api)}
	h.class = "class-" + h.namespace
	h.config = rest.AnonymousClientConfig(api)
	h.config.QPS, h.config.BearerToken = -1, bundletest.Token(t, api, h.namespace, "provisioner", roles(t)...)

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "content-" + h.namespace},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/bundles/*"}, Verbs: []string{"get"}}, {NonResourceURLs: []string{"/uploads/*"}, Verbs: []string{"put"}}},
	}
	if err := bundletest.Client(t, api).Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}

	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(bundletest.Token(t, api, h.namespace, "content", role.Name)), 0o600); err != nil {
		t.Fatal(err)
	}

	config := bundler.DefaultConfig()
	config.Address, config.StatusAddress, config.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	config.Namespace, config.StoreDir, config.TLS.SelfSigned = h.namespace, t.TempDir(), true
	config.Bundles.PlainClass, config.Deployments.PlainClass, config.Bundles.RegistryClass = h.class, h.class, "registry-"+h.namespace
	config.Deployments.TokenFile, config.Deployments.HealthInterval = token, time.Second

	service, err := bundler.New(t.Context(), config, api, logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)

	go func() { ended <- service.Run(ctx) }()

	h.stop = sync.OnceFunc(func() {
		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(h.stop)

	if h.uploads, err = bundles.NewUploads(bundles.UploadsOptions{
		Address: service.Address(), TokenFile: token, CAFile: filepath.Join(config.StoreDir, "tls.crt"),
	}); err != nil {
		t.Fatal(err)
	}

	return h
}

// roles creates the ClusterRoles of resources/rbac for the Provisioner, unless another test has done so, and returns their names.
func roles(t *testing.T) (names []string) {
	t.Helper()

	file, err := os.Open(filepath.Join("..", "..", "..", "resources", "rbac", "provisioner-bundles.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		role := &rbacv1.ClusterRole{}

		err := decoder.Decode(role)
		if errors.Is(err, io.EOF) {
			return names
		}

		if err == nil {
			err = bundletest.Client(t, api).Create(t.Context(), role)
		}

		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}

		names = append(names, role.Name)
	}
}

// cluster is the cluster of one runtime, with namespaces of its own.
type cluster struct {
	*testing.T
	client.Client

	runtime     string
	operation   int
	hub         *hub
	kubeconfigs *kubeconfigs
	now         func() time.Time
	// via makes an Installer for the manifests.
	via func(installation.Manifests) installation.Installer
}

func newCluster(t *testing.T, on *hub, direct bool) *cluster {
	t.Helper()

	c := &cluster{T: t, Client: bundletest.Client(t, api), runtime: uuid.NewString(), hub: on, kubeconfigs: &kubeconfigs{}, now: time.Now}
	if c.via = c.bundles; direct {
		c.via = func(manifests installation.Manifests) installation.Installer { return c.direct(manifests) }
	}

	stop := c.finishNamespaces()

	t.Cleanup(func() {
		c.uninstall()
		stop()
	})

	return c
}

func (c *cluster) direct(manifests installation.Manifests) *installer.Installer {
	return installer.New(installer.Options{Manifests: manifests, Now: time.Now})
}

func (c *cluster) bundles(manifests installation.Manifests) installation.Installer {
	return c.installer(manifests, c.hub.config)
}

func (c *cluster) installer(manifests installation.Manifests, hub *rest.Config) *bundles.Installer {
	connection, err := bundles.Connect(hub, func(next http.RoundTripper) http.RoundTripper { return next })
	if err != nil {
		c.Fatal(err)
	}

	return bundles.New(bundles.Options{
		Hub: connection.Client, Namespace: c.hub.namespace, Class: c.hub.class, Uploads: c.hub.uploads, Manifests: manifests, Direct: c.direct(manifests),
		Kubeconfigs: c.kubeconfigs, Validity: time.Hour, DeletionTimeout: time.Minute, Now: c.now,
	})
}

// target returns the cluster in the current operation.
func (c *cluster) target() installation.Target {
	return installation.Target{RuntimeID: c.runtime, ShootName: "c-" + c.runtime[:8], OperationID: fmt.Sprint("operation-", c.operation), Cluster: api}
}

// try installs components in a new operation, until the installation is done or fails.
func (c *cluster) try(release release, components ...installation.Component) (installation.Progress, error) {
	c.Helper()
	c.operation++

	return c.repeat(func() (installation.Progress, error) {
		return c.via(release).Install(c.Context(), c.target(), installation.Plan{Version: "1.0.0", Components: components})
	})
}

func (c *cluster) install(release release, components ...installation.Component) {
	c.Helper()

	if progress, err := c.try(release, components...); err != nil || !progress.Done {
		c.Fatalf("not installed: %+v, %v", progress, err)
	}
}

func (c *cluster) uninstall() {
	c.Helper()

	progress, err := c.repeat(func() (installation.Progress, error) {
		return c.via(release{}).Uninstall(context.WithoutCancel(c.Context()), c.target())
	})
	if err != nil || !progress.Done {
		c.Errorf("not uninstalled: %+v, %v", progress, err)
	}
}

// repeat repeats a call as the engine does.
func (c *cluster) repeat(call func() (installation.Progress, error)) (progress installation.Progress, err error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()

	for deadline := time.Now().Add(patience); ; <-ticker.C {
		progress, err = call()
		if err == nil && progress.Done || err != nil && !failure.Is(err, failure.Transient) || time.Now().After(deadline) {
			return progress, err
		}
	}
}

// finishNamespaces does the work of the namespace controller for namespaces without objects.
func (c *cluster) finishNamespaces() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())

	clients, err := kubernetes.NewForConfig(rest.CopyConfig(api))
	if err != nil {
		c.Fatal(err)
	}

	var done sync.WaitGroup

	done.Go(func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()

		for ctx.Err() == nil {
			for _, name := range []string{c.namespace(), c.namespace() + "-b"} {
				if namespace, err := clients.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err == nil && namespace.DeletionTimestamp != nil {
					namespace.Spec.Finalizers = nil
					_, _ = clients.CoreV1().Namespaces().Finalize(ctx, namespace, metav1.UpdateOptions{})
				}
			}

			<-ticker.C
		}
	})

	return func() { cancel(); done.Wait() }
}

// part returns a component in the namespace of the test. Its source is its name.
func (c *cluster) part(name string) installation.Component {
	return installation.Component{Name: name, Source: name, Namespace: c.namespace()}
}

func (c *cluster) namespace() string { return "ns-" + c.runtime[:8] }

func (c *cluster) group() string { return "g" + c.runtime[:8] + ".example.com" }

func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  key: %q\n---\n", name, value)
}

func (c *cluster) definition(kind string) string {
	plural := strings.ToLower(kind) + "s"

	return fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %[1]s.%[2]s}\nspec:\n"+
		"  group: %[2]s\n  scope: Namespaced\n  names: {kind: %[3]s, plural: %[1]s}\n  versions:\n  - name: v1\n    served: true\n"+
		"    storage: true\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n---\n", plural, c.group(), kind)
}

func (c *cluster) instance(kind, name string) string {
	return fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata: {name: %s}\n---\n", c.group(), kind, name)
}

// object returns an object, or nil if it does not exist.
func (c *cluster) object(group, version, kind, namespace, name string) *unstructured.Unstructured {
	c.Helper()

	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})

	err := c.Get(c.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		c.Fatal(err)
	}

	return object
}

// value returns the value of a ConfigMap, or "" if it does not exist.
func (c *cluster) value(name string) string {
	c.Helper()

	found := &corev1.ConfigMap{}
	if err := c.Get(c.Context(), client.ObjectKey{Namespace: c.namespace(), Name: name}, found); client.IgnoreNotFound(err) != nil {
		c.Fatal(err)
	}

	return found.Data["key"]
}

// onHub describes the objects of the runtime on the hub.
func (c *cluster) onHub() (names []string) {
	c.Helper()

	for _, list := range []client.ObjectList{&v1alpha1.BundleDeploymentList{}, &v1alpha1.BundleList{}, &corev1.SecretList{}} {
		if err := c.List(c.Context(), list, client.MatchingLabels{bundles.LabelRuntime: c.runtime}); err != nil {
			c.Fatal(err)
		}

		_ = meta.EachListItem(list, func(object runtime.Object) error {
			names = append(names, fmt.Sprintf("%T %s", object, object.(client.Object).GetName()))

			return nil
		})
	}

	return names
}

func (c *cluster) create(kind, name string) {
	c.Helper()

	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": c.group() + "/v1", "kind": kind}}
	object.SetNamespace(c.namespace())
	object.SetName(name)

	if err := c.Create(c.Context(), object); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) createNamespace() {
	c.Helper()

	if err := c.Create(c.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace()}}); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) createConfigMap(name string) {
	c.Helper()

	if err := c.Create(c.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace(), Name: name}}); err != nil {
		c.Fatal(err)
	}
}

// Eventually repeats a check until it returns "".
func (c *cluster) Eventually(check func() string) {
	c.Helper()
	bundletest.Eventually(c.T, check)
}
