//go:build garden

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	broker "github.com/environment-broker/environment-broker/broker/service"
	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	bundler "github.com/environment-broker/environment-broker/bundle/service"
	"github.com/environment-broker/environment-broker/internal/logging"
	provisioner "github.com/environment-broker/environment-broker/provisioner/service"
	"github.com/environment-broker/environment-broker/test/apiserver"
	"github.com/environment-broker/environment-broker/test/harness"
)

const hubNamespace = "bundle-system"

// hub is a bundle provisioner on a cluster of its own.
type hub struct {
	*testing.T

	api client.Client
	// configure makes a Provisioner use the hub, with only the roles in resources/rbac.
	configure func(*provisioner.Config)
}

func startHub(t *testing.T) *hub {
	t.Helper()
	ctrl.SetLogger(logr.Discard())

	config := apiserver.Run(t, apiserver.CRDs).Config

	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}

	h := &hub{T: t}

	var err error
	if h.api, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}

	h.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubNamespace}})
	h.createRoles()

	content := filepath.Join(t.TempDir(), "content-token")
	h.write(content, h.token("bundler", []string{"bundle-reader"}, nil))

	settings := bundler.DefaultConfig()
	settings.Address, settings.StatusAddress, settings.ShutdownDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	settings.Namespace, settings.StoreDir, settings.TLS.SelfSigned = hubNamespace, t.TempDir(), true
	settings.Deployments.TokenFile, settings.Deployments.HealthInterval = content, time.Second

	service, err := bundler.New(t.Context(), settings, config, logging.Discard())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(harness.Run(t, service.Run))

	kubeconfig := filepath.Join(t.TempDir(), "hub-kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			"u": {Token: h.token("provisioner", []string{"bundle-installer"}, []string{"bundle-installer-namespace"})},
		},
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}

	h.configure = func(config *provisioner.Config) {
		bundles := &config.Kyma.Bundles
		bundles.KubeconfigPath, bundles.ContentAddress, bundles.CAFile = kubeconfig, service.Address(), filepath.Join(settings.StoreDir, "tls.crt")
	}

	return h
}

func (h *hub) create(object client.Object) {
	h.Helper()

	if err := h.api.Create(h.Context(), object); err != nil {
		h.Fatal(err)
	}
}

func (h *hub) write(path, text string) {
	h.Helper()

	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
}

// createRoles creates the roles defined in resources/rbac.
func (h *hub) createRoles() {
	h.Helper()

	for _, name := range []string{"bundles.yaml", "provisioner-bundles.yaml"} {
		text, err := os.ReadFile(filepath.Join(harness.Root, "resources", "rbac", name))
		if err != nil {
			h.Fatal(err)
		}

		for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
			object := &unstructured.Unstructured{}

			err := decoder.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}

			if err != nil {
				h.Fatal(err)
			}

			h.create(object)
		}
	}
}

// token creates a ServiceAccount with the given ClusterRoles and Roles, and returns its token.
func (h *hub) token(name string, clusterRoles, roles []string) string {
	h.Helper()

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: name}}
	h.create(account)

	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubNamespace, Name: name}}

	for _, role := range clusterRoles {
		h.create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		})
	}

	for _, role := range roles {
		h.create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: role}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		})
	}

	request := &authenticationv1.TokenRequest{}
	if err := h.api.SubResource("token").Create(h.Context(), account, request); err != nil {
		h.Fatal(err)
	}

	return request.Status.Token
}

// objects returns the BundleDeployments, the Bundles and the Secrets with kubeconfigs on the hub.
func (h *hub) objects(ctx context.Context) (deployments []v1alpha1.BundleDeployment, bundles []v1alpha1.Bundle, secrets []corev1.Secret) {
	h.Helper()

	one, two, three := &v1alpha1.BundleDeploymentList{}, &v1alpha1.BundleList{}, &corev1.SecretList{}
	for _, list := range []client.ObjectList{one, two, three} {
		if err := h.api.List(ctx, list); err != nil {
			h.Fatal(err)
		}
	}

	for _, secret := range three.Items {
		if secret.Namespace == hubNamespace {
			secrets = append(secrets, secret)
		}
	}

	return one.Items, two.Items, secrets
}

// wantEmpty checks that the hub contains no objects that belong to a runtime.
func (h *hub) wantEmpty() {
	h.Helper()

	if deployments, bundles, secrets := h.objects(h.Context()); len(deployments)+len(bundles)+len(secrets) > 0 {
		h.Errorf("on the hub: %d BundleDeployments, %d Bundles, %d Secrets", len(deployments), len(bundles), len(secrets))
	}
}

// TestBundlesOnLocalGarden runs testKyma with a bundle provisioner: orders over GraphQL, upgrades, a rollback and the removal.
func TestBundlesOnLocalGarden(t *testing.T) {
	t.Parallel()

	h := startHub(t)

	seen := false

	testKyma(t, sharedGarden(t, "own").project, func(c clusters, runtimeID string) {
		deployments, bundles, secrets := h.objects(t.Context())
		seen = len(deployments) >= 2 && len(bundles) == len(deployments) && len(secrets) == 1

		for _, deployment := range deployments {
			if text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&deployment); err != nil || strings.Contains(stringOf(text), "hush") {
				t.Errorf("the secret value is in BundleDeployment %s, %v", deployment.Name, err)
			}
		}

		c.defineServices(runtimeID)
	}, h.configure)

	if !seen {
		t.Error("the components were not installed through the bundle provisioner")
	}

	h.wantEmpty()
}

// stringOf returns the fields of an object as text.
func stringOf(object map[string]any) string {
	text, _ := (&unstructured.Unstructured{Object: object}).MarshalJSON()

	return string(text)
}

// TestModulesThroughBundles orders an instance through the OSB API. A module fails because its object already exists, and
// last_operation must name the module.
func TestModulesThroughBundles(t *testing.T) {
	t.Parallel()

	h := startHub(t)
	e := start(t, harness.SQLite, 200*time.Millisecond, withReleases("1.0.0"), func(_ *broker.Config, provisioner *provisioner.Config) { h.configure(provisioner) })

	e.order("mine", list("serverless"))
	e.WantSucceeded("mine")
	e.wantModules("the ordered module", "mine", "1.0.0", "serverless")

	modules := harness.RuntimeClient(e, e.kubeconfig("mine")).CoreV1().ConfigMaps("kyma-system")
	if _, err := modules.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "eventing"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	e.Update("mine", map[string]any{"parameters": list("eventing", "serverless")})
	e.WantFailed("mine", "component eventing (3 of 4): one of its objects already exists and was installed by somebody else")

	if err := modules.Delete(t.Context(), "eventing", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	e.Update("mine", map[string]any{"parameters": list("eventing", "serverless")})
	e.WantSucceeded("mine")
	e.wantModules("the corrected module", "mine", "1.0.0", "eventing", "serverless")

	e.Delete("mine", harness.PlanPreview)
	e.WantGone("mine")
	h.wantEmpty()
}
