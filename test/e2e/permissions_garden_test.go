//go:build garden

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/test/harness"
)

// TestDocumentedPermissionsSuffice checks that Gardener's API server accepts the Shoots of all providers and their changes from a ServiceAccount that has exactly the
// documented permissions. The Provisioner authenticates with a short-lived token from a file.
func TestDocumentedPermissionsSuffice(t *testing.T) {
	t.Parallel()

	garden := sharedGarden(t, "own")

	api, err := gardener.Connect(provisionerAccount(t, garden))
	if err != nil {
		t.Fatal(err)
	}

	// New role bindings take effect after a delay, because API servers cache role bindings and rejections.
	for kind, list := range map[string]client.ObjectList{
		"Shoots": &gardencorev1beta1.ShootList{}, "their ConfigMaps": &corev1.ConfigMapList{},
	} {
		harness.Until(t, "the permission to list "+kind, func() bool {
			return api.List(t.Context(), list, client.InNamespace(garden.Namespace())) == nil
		})
	}

	testRuntimeChanges(t, project{api, garden.name})
}

// provisionerAccount creates a ServiceAccount with the documented role and returns the path of its kubeconfig.
func provisionerAccount(t *testing.T, project localProject) string {
	t.Helper()

	config, err := clientcmd.BuildConfigFromFlags("", project.admin)
	if err != nil {
		t.Fatal(err)
	}

	garden, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	role := documentedRole(t)
	role.Namespace = project.Namespace()

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: role.Namespace, Name: "provisioner"}}

	if _, err := garden.CoreV1().ServiceAccounts(role.Namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	if _, err := garden.RbacV1().Roles(role.Namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	if _, err := garden.RbacV1().RoleBindings(role.Namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: role.Namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: role.Namespace, Name: account.Name}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	seconds := int64(time.Hour.Seconds())

	token, err := garden.CoreV1().ServiceAccounts(role.Namespace).CreateToken(t.Context(), account.Name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	folder := t.TempDir()
	tokenFile, path := filepath.Join(folder, "token"), filepath.Join(folder, "kubeconfig")

	if err := os.WriteFile(tokenFile, []byte(token.Status.Token), 0o600); err != nil {
		t.Fatal(err)
	}

	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "gardener",
		Contexts:       map[string]*clientcmdapi.Context{"gardener": {Cluster: "gardener", AuthInfo: "provisioner"}},
		Clusters: map[string]*clientcmdapi.Cluster{
			"gardener": {Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"provisioner": {TokenFile: tokenFile}},
	}, path); err != nil {
		t.Fatal(err)
	}

	return path
}

// documentedRole reads the role from docs/operator/gardener.md.
func documentedRole(t *testing.T) *rbacv1.Role {
	t.Helper()

	page, err := os.ReadFile(filepath.Join(harness.Root, "docs", "operator", "gardener.md"))
	if err != nil {
		t.Fatal(err)
	}

	_, rest, _ := strings.Cut(string(page), "```yaml\napiVersion: rbac.authorization.k8s.io/v1\n")
	manifest, _, found := strings.Cut(rest, "```")

	role := &rbacv1.Role{}
	if err := yaml.UnmarshalStrict([]byte("apiVersion: rbac.authorization.k8s.io/v1\n"+manifest), role); err != nil || !found || len(role.Rules) == 0 {
		t.Fatalf("the page has no valid role: %v", err)
	}

	return role
}
