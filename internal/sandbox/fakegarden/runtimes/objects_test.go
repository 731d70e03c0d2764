package runtimes_test

import (
	"net/http"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const account = "someone"

func (r runtime) admin(t *testing.T) *clientset.Clientset {
	t.Helper()
	return typed(t, r, r.as(t, r.authority, admins, time.Hour), "")
}

func (r runtime) withToken(t *testing.T, token string) *clientset.Clientset {
	t.Helper()
	return typed(t, r, r.as(t, nil, "", 0), token)
}

func typed(t *testing.T, r runtime, transport *http.Client, token string) *clientset.Clientset {
	t.Helper()
	config := &rest.Config{Host: r.endpoint.URL, QPS: -1}
	if token != "" {
		transport = &http.Client{Transport: bearer{transport.Transport, token}}
	}
	client, err := clientset.NewForConfigAndClient(config, transport)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

type bearer struct {
	http.RoundTripper

	token string
}

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(request)
}

// addAccount creates a ServiceAccount with a ClusterRole and returns a token for it.
func addAccount(t *testing.T, admin *clientset.Clientset, role string) string {
	t.Helper()
	if _, err := admin.CoreV1().ServiceAccounts("kube-system").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kube-system", Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return issue(t, admin)
}

func issue(t *testing.T, admin *clientset.Clientset) string {
	t.Helper()
	issued, err := admin.CoreV1().ServiceAccounts("kube-system").CreateToken(t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(issued.Status.ExpirationTimestamp.Time); left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("the token is valid for %s, want ten minutes", left)
	}
	return issued.Status.Token
}

func TestRoles(t *testing.T) {
	tests := []struct {
		reason, role                          string
		reads, secrets, writes, rules, tokens bool
	}{
		{"an administrator can do everything", "cluster-admin", true, true, true, true, true},
		{"an editor can change workloads but not roles", "edit", true, true, true, false, true},
		{"a viewer cannot read secrets", "view", true, false, false, false, false},
		{"an unknown role allows nothing", "unknown", false, false, false, false, false},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			server, _ := serve(t, t.TempDir())
			runtime := startRuntime(t, server, "own")
			user := runtime.withToken(t, addAccount(t, runtime.admin(t), test.role))
			check := func(what string, want bool, err error) {
				t.Helper()
				if (err == nil) != want || err != nil && !apierrors.IsForbidden(err) {
					t.Errorf("%s: got %v, want allowed %t", what, err, want)
				}
			}
			_, err := user.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
			check("reading", test.reads, err)
			_, err = user.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
			check("listing namespaces", test.reads, err)
			_, err = user.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
			check("reading secrets", test.secrets, err)
			_, err = user.CoreV1().ConfigMaps("default").Create(t.Context(),
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
			check("writing", test.writes, err)
			_, err = user.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
			check("listing role bindings", test.rules, err)
			_, err = user.CoreV1().ServiceAccounts("kube-system").CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			check("issuing tokens", test.tokens, err)
		})
	}
}

func TestTokensOfADeletedAccountAreRejected(t *testing.T) {
	dir := t.TempDir()
	server, stop := serve(t, dir)
	own, other := startRuntime(t, server, "own"), startRuntime(t, server, "other")
	token := addAccount(t, own.admin(t), "view")
	allowed := func(at runtime, token string) bool {
		t.Helper()
		_, err := at.withToken(t, token).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		if err != nil && !apierrors.IsUnauthorized(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	if !allowed(own, token) || allowed(other, token) || allowed(own, token+"x") || allowed(own, "x.y.z") || allowed(own, "x") {
		t.Error("a modified token or a token of another runtime was accepted")
	}

	stop()
	server, _ = serve(t, dir)
	if _, err := server.Start(t.Context(), "own", own.authority.CertificatePEM()); err != nil {
		t.Fatal(err)
	}
	if !allowed(own, token) {
		t.Error("a restart invalidated the token")
	}

	admin := own.admin(t)
	if err := admin.CoreV1().ServiceAccounts("kube-system").Delete(t.Context(), account, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if allowed(own, token) {
		t.Error("the token of a deleted account was accepted")
	}
	if err := admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), account, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if again := addAccount(t, admin, "view"); !allowed(own, again) || allowed(own, token) {
		t.Error("a recreated account must accept only new tokens")
	}
}

func TestStopDeletesObjects(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	runtime := startRuntime(t, server, "own")
	addAccount(t, runtime.admin(t), "view")
	if _, err := server.Start(t.Context(), "own", runtime.authority.CertificatePEM()); err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.admin(t).CoreV1().ServiceAccounts("kube-system").Get(t.Context(), account, metav1.GetOptions{}); err != nil {
		t.Errorf("starting a running runtime lost an object: %v", err)
	}
	if err := server.Stop(t.Context(), "own"); err != nil {
		t.Fatal(err)
	}
	renewed := startRuntime(t, server, "own")
	if _, err := renewed.admin(t).CoreV1().ServiceAccounts("kube-system").Get(t.Context(), account, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a new runtime contains an object of the deleted runtime with the same name: %v", err)
	}
}

func TestRejectedChanges(t *testing.T) {
	server, _ := serve(t, t.TempDir())
	admin := startRuntime(t, server, "own").admin(t)
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	create := func(namespace string, object *corev1.ConfigMap) error {
		_, err := admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), object, metav1.CreateOptions{})
		return err
	}
	if err := create("default", configMap); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		reason string
		err    error
		is     func(error) bool
	}{
		{"names must be unique", create("default", configMap), apierrors.IsAlreadyExists},
		{"the namespace must exist", create("nowhere", configMap), apierrors.IsNotFound},
		{"names must be DNS names", create("default", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "_"}}), apierrors.IsInvalid},
		{"a missing object cannot be deleted", admin.CoreV1().ConfigMaps("default").Delete(t.Context(), "two", metav1.DeleteOptions{}), apierrors.IsNotFound},
	}
	for _, test := range tests {
		if !test.is(test.err) {
			t.Errorf("%s: %v", test.reason, test.err)
		}
	}
	found, err := admin.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(found.Items) != 1 || found.Items[0].UID == "" || found.Items[0].Namespace != "default" {
		t.Errorf("got %v, %v, want one config map in the namespace default", found, err)
	}
}
