package fakehub_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/sirupsen/logrus/hooks/test"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/content"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakehub"
)

const namespace = "bundle-system"

type hub struct {
	*testing.T
	client.Client

	config *rest.Config
	stop   func()
}

// start runs a hub with the objects of a folder until stop is called or the test ends.
func start(t *testing.T, dir string) *hub {
	t.Helper()

	log, _ := test.NewNullLogger()

	opened, err := fakehub.Open(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)

	go func() { ended <- opened.Run(ctx) }()

	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	h := &hub{T: t, config: opened.Config()}
	h.config.Timeout = time.Minute

	stopped := false
	h.stop = func() {
		if stopped {
			return
		}

		stopped = true

		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(h.stop)

	if h.Client, err = client.New(h.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}

	return h
}

func (h *hub) create(objects ...client.Object) {
	h.Helper()

	for _, object := range objects {
		if err := h.Create(h.Context(), object); err != nil {
			h.Fatal(err)
		}
	}
}

// account creates a ServiceAccount, binds it to the given roles, and returns a token for it.
func (h *hub) account(name string, roles ...string) string {
	h.Helper()

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	h.create(account)

	for _, role := range roles {
		h.create(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + role}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		})
	}

	request := &authenticationv1.TokenRequest{}
	if err := h.SubResource("token").Create(h.Context(), account, request); err != nil {
		h.Fatal(err)
	}

	return request.Status.Token
}

func newHub(t *testing.T) *hub {
	t.Helper()

	h := start(t, t.TempDir())
	h.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})

	return h
}

// TestTokenReviews checks which tokens the hub accepts in the reviews that a content server requests.
func TestTokenReviews(t *testing.T) {
	t.Parallel()

	h := newHub(t)
	valid, gone, again := h.account("reader"), h.account("gone"), h.account("again")
	elsewhere := newHub(t).account("reader")

	for _, name := range []string{"gone", "again"} {
		if err := h.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}

	h.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "again"}})

	for _, c := range []struct {
		reason, token, want string
	}{
		{"the account exists", valid, "system:serviceaccount:bundle-system:reader"},
		{"the account was deleted", gone, ""},
		{"the account is another one with the same name", again, ""},
		{"another server has issued it", elsewhere, ""},
		{"its signature is wrong", valid + "x", ""},
		{"it is no token", "x", ""},
		{"there is none", "", ""},
	} {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: c.token}}
		if err := h.Create(t.Context(), review); err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}

		if got := review.Status; got.Authenticated != (c.want != "") || got.User.Username != c.want {
			t.Errorf("%s: got %+v", c.reason, got)
		}

		if review.Spec.Token != "" {
			t.Errorf("%s: the response repeats the token", c.reason)
		}
	}
}

// TestSubjectAccessReviews checks the permissions of accounts.
func TestSubjectAccessReviews(t *testing.T) {
	t.Parallel()

	h := newHub(t)
	h.account("reader", "bundle-reader")
	h.account("uploader", "bundle-uploader")
	h.account("both", "bundle-reader", "bundle-uploader")
	h.account("administrator", "cluster-admin")
	h.account("none")

	const prefix = "system:serviceaccount:bundle-system:"

	path := func(verb, path string) authorizationv1.SubjectAccessReviewSpec {
		return authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path}}
	}
	secrets := authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets"}}

	for _, c := range []struct {
		reason, user string
		asked        authorizationv1.SubjectAccessReviewSpec
		want         bool
	}{
		{"readers read content", prefix + "reader", path("get", "/bundles/a.tgz"), true},
		{"readers upload nothing", prefix + "reader", path("put", "/uploads/a.tgz"), false},
		{"readers read no other path", prefix + "reader", path("get", "/metrics"), false},
		{"readers read no Secrets", prefix + "reader", secrets, false},
		{"uploaders upload", prefix + "uploader", path("put", "/uploads/a.tgz"), true},
		{"uploaders read no content", prefix + "uploader", path("get", "/bundles/a.tgz"), false},
		{"roles add up", prefix + "both", path("get", "/bundles/a.tgz"), true},
		{"roles add up", prefix + "both", path("put", "/uploads/a.tgz"), true},
		{"administrators may do everything", prefix + "administrator", path("put", "/uploads/a.tgz"), true},
		{"administrators may do everything", prefix + "administrator", secrets, true},
		{"an account without a role may do nothing", prefix + "none", path("get", "/bundles/a.tgz"), false},
		{"the account does not exist", prefix + "missing", path("get", "/bundles/a.tgz"), false},
		{"other users have no roles", "reader", path("get", "/bundles/a.tgz"), false},
		{"the name has no namespace", "system:serviceaccount:reader", path("get", "/bundles/a.tgz"), false},
	} {
		c.asked.User = c.user

		review := &authorizationv1.SubjectAccessReview{Spec: c.asked}
		if err := h.Create(t.Context(), review); err != nil || review.Status.Allowed != c.want {
			t.Errorf("%s: got %v, %v", c.reason, review.Status.Allowed, err)
		}
	}
}

// TestAccessToContent checks that a content server can protect its content with the reviews of the hub, as the bundle provisioner does.
func TestAccessToContent(t *testing.T) {
	t.Parallel()

	h := newHub(t)
	reader, none := h.account("reader", "bundle-reader"), h.account("none")

	access, err := content.NewAccess(h.config, time.Minute, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}

	protected := access.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))

	for _, c := range []struct {
		reason, method, path, token string
		want                        int
	}{
		{"the role permits it", http.MethodGet, "/bundles/a.tgz", reader, http.StatusOK},
		{"the role does not permit it", http.MethodPut, "/uploads/a.tgz", reader, http.StatusForbidden},
		{"the account has no role", http.MethodGet, "/bundles/a.tgz", none, http.StatusForbidden},
		{"the token is invalid", http.MethodGet, "/bundles/a.tgz", reader + "x", http.StatusUnauthorized},
		{"there is no token", http.MethodGet, "/bundles/a.tgz", "", http.StatusUnauthorized},
	} {
		request := httptest.NewRequestWithContext(t.Context(), c.method, c.path, http.NoBody)
		if c.token != "" {
			request.Header.Set("Authorization", "Bearer "+c.token)
		}

		response := httptest.NewRecorder()
		if protected.ServeHTTP(response, request); response.Code != c.want {
			t.Errorf("%s: got %d, want %d", c.reason, response.Code, c.want)
		}
	}
}

// TestPatches checks which kinds of patches are supported: as on real API servers, custom resources have no strategic merge
// patches. It also checks that the objects survive a restart.
func TestPatches(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	h := start(t, dir)
	h.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})

	source := v1alpha1.BundleSource{Type: v1alpha1.SourceTypeUpload, Upload: &v1alpha1.UploadSource{}}
	bundle := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: v1alpha1.BundleSpec{ProvisionerClassName: "plain", Source: source}}
	deployment := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: v1alpha1.BundleDeploymentSpec{
		ProvisionerClassName: "plain", Template: v1alpha1.BundleTemplate{Spec: v1alpha1.TemplateSpec{ProvisionerClassName: "plain", Source: source}},
	}}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}

	for _, object := range []client.Object{bundle, deployment, configMap} {
		h.create(object)

		_, builtIn := object.(*corev1.ConfigMap)

		changed := object.DeepCopyObject().(client.Object)
		changed.SetLabels(map[string]string{"strategic": "yes"})

		err := h.Patch(t.Context(), changed, client.StrategicMergeFrom(object))
		if builtIn && err != nil || !builtIn && !apierrors.IsUnsupportedMediaType(err) {
			t.Errorf("a strategic merge patch of a %T: %v", object, err)
		}

		changed.SetLabels(map[string]string{"merge": "yes"})

		if err := h.Patch(t.Context(), changed, client.MergeFrom(object)); err != nil || changed.GetLabels()["merge"] != "yes" {
			t.Errorf("a merge patch of a %T: %v, %v", object, changed.GetLabels(), err)
		}
	}

	broken := deployment.DeepCopy()
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(broken), broken); err != nil {
		t.Fatal(err)
	}

	if err := h.Patch(t.Context(), broken, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"provisionerClassName":"a.b"}}`))); !apierrors.IsInvalid(err) {
		t.Errorf("a patch with an invalid class: %v", err)
	}

	h.stop()

	again := start(t, dir)

	found := &v1alpha1.BundleDeployment{}
	if err := again.Get(t.Context(), client.ObjectKeyFromObject(deployment), found); err != nil || found.Spec.ProvisionerClassName != "plain" ||
		found.Labels["merge"] != "yes" || found.UID != deployment.UID {
		t.Errorf("after a restart: %+v, %v", found, err)
	}
}
