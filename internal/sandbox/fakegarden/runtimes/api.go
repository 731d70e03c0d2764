package runtimes

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/kubeapi"
)

// newScheme returns a scheme with the kinds of a runtime. Each runtime needs its own scheme, because clients add kinds to it.
// Custom resources have no Go types and are unstructured. TokenRequest is not a served kind, but clients send it to the token
// subresource.
func newScheme(more More) (*k8sruntime.Scheme, error) {
	scheme := k8sruntime.NewScheme()
	builder := k8sruntime.NewSchemeBuilder(corev1.AddToScheme, rbacv1.AddToScheme)
	if more.AddToScheme != nil {
		builder.Register(more.AddToScheme)
	}
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds of the runtimes: %w", err)
	}
	scheme.AddKnownTypes(authenticationv1.SchemeGroupVersion, &authenticationv1.TokenRequest{}, &authenticationv1.TokenReview{})
	scheme.AddKnownTypes(authorizationv1.SchemeGroupVersion, &authorizationv1.SubjectAccessReview{})
	for _, kind := range kinds() {
		if !scheme.Recognizes(kind.GroupVersionKind) {
			scheme.AddKnownTypeWithName(kind.GroupVersionKind, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
		}
	}
	return scheme, nil
}

// openAPI opens the API server of a runtime and creates the namespaces that every cluster has, unless they exist from an earlier
// start. The server authorizes these requests like all others, so openAPI sends them as an administrator.
func (s *Server) openAPI(ctx context.Context, technicalID string) (*kubeapi.Server, error) {
	scheme, err := newScheme(s.more)
	if err != nil {
		return nil, err
	}
	var api *kubeapi.Server
	api, err = kubeapi.Open(kubeapi.Options{
		Scheme: scheme, Kinds: slices.Concat(kinds(), s.more.Kinds), Dir: s.objectsDir(technicalID), Admit: s.admit, Authorize: authorize,
		Version: func(ctx context.Context) string { return s.version(ctx, technicalID) },
		Subresources: map[string]kubeapi.Subresource{
			"serviceaccounts/token": kubeapi.Completing(func(ctx context.Context, key client.ObjectKey, request *authenticationv1.TokenRequest) error {
				return s.issueToken(ctx, api, technicalID, key, request)
			}),
			"tokenreviews": kubeapi.Completing(func(ctx context.Context, _ client.ObjectKey, review *authenticationv1.TokenReview) error {
				s.reviewToken(ctx, api, technicalID, review)
				return nil
			}),
			"subjectaccessreviews": kubeapi.Completing(func(ctx context.Context, _ client.ObjectKey, review *authorizationv1.SubjectAccessReview) error {
				s.reviewAccess(ctx, api, review)
				return nil
			}),
		},
	})
	if err != nil {
		return nil, err
	}
	c, _, err := api.Client()
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, userKey{}, user{name: "system", roles: []string{administrator}})
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
	}
	return api, nil
}

// admit implements kubeapi.Options.Admit. It applies the rules that all runtimes share, and then those in More.
func (s *Server) admit(ctx context.Context, objects client.Reader, old, object client.Object) error {
	if err := admit(ctx, objects, old, object); err != nil || s.more.Admit == nil {
		return err
	}
	return s.more.Admit(ctx, objects, old, object)
}

// admit applies the rules that all runtimes share. The namespace of a new object must exist; otherwise admit returns a not-found
// error for the Namespace. A new Namespace is active. As on a real API server, the role of a binding is immutable, because a
// change would silently extend the permissions of all subjects.
func admit(ctx context.Context, objects client.Reader, old, object client.Object) error {
	if namespace, is := object.(*corev1.Namespace); is && old == nil {
		namespace.Status.Phase = corev1.NamespaceActive
	}
	if old == nil && object.GetNamespace() != "" {
		return objects.Get(ctx, client.ObjectKey{Name: object.GetNamespace()}, &corev1.Namespace{})
	}
	present, _ := old.(*rbacv1.ClusterRoleBinding)
	binding, _ := object.(*rbacv1.ClusterRoleBinding)
	if present == nil || binding == nil || present.RoleRef == binding.RoleRef {
		return nil
	}
	return apierrors.NewInvalid(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding").GroupKind(), binding.Name, field.ErrorList{
		field.Invalid(field.NewPath("roleRef"), binding.RoleRef, "cannot change roleRef"),
	})
}

// authorize implements kubeapi.Options.Authorize. At least one role of the user in the request's context must allow the request.
// A request without a user is forbidden.
func authorize(r *http.Request, kind kubeapi.Kind) error {
	user, _ := r.Context().Value(userKey{}).(user)
	for _, role := range user.roles {
		if allows(role, r.Method, kind) {
			return nil
		}
	}
	return apierrors.NewForbidden(kind.Resource().GroupResource(), "", fmt.Errorf("user %s has no role that allows this request", user.name))
}

// allows reports whether a ClusterRole allows a request for a kind. It implements the default roles of every cluster, simplified
// to reading and writing; other roles allow nothing. As in a real cluster, the view role cannot read Secrets, because they
// contain the tokens of other accounts. Neither view nor edit can read roles or role bindings.
func allows(role, method string, kind kubeapi.Kind) bool {
	reads := method == http.MethodGet
	switch {
	case role == administrator:
		return true
	case kind.Group == rbacv1.GroupName:
		return false
	}
	switch role {
	case "edit":
		return kind.Namespaced || reads && kind.Kind == "Namespace"
	case "view":
		return reads && (kind.Namespaced && kind.Kind != "Secret" || kind.Kind == "Namespace")
	}
	return false
}
