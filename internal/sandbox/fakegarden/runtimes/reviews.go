package runtimes

import (
	"context"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// accountPrefix is the prefix of ServiceAccount user names.
const accountPrefix = "system:serviceaccount:"

// reviewToken sets the status of a TokenReview for a runtime. It clears the token, so that the response does not repeat it.
func (s *Server) reviewToken(ctx context.Context, objects client.Reader, technicalID string, review *authenticationv1.TokenReview) {
	found, valid := s.ofToken(ctx, review.Spec.Token, technicalID, objects)
	review.TypeMeta = metav1.TypeMeta{Kind: "TokenReview", APIVersion: authenticationv1.SchemeGroupVersion.String()}
	review.Spec.Token = ""
	review.Status = authenticationv1.TokenReviewStatus{Authenticated: valid, User: authenticationv1.UserInfo{Username: found.name}}
}

// reviewAccess sets the status of a SubjectAccessReview. ServiceAccounts with the cluster-admin role may do everything. Other
// ServiceAccounts may access only the paths that More.AllowsPath allows. reviewAccess denies everything else, including access to
// resources that a role permits.
func (s *Server) reviewAccess(ctx context.Context, objects client.Reader, review *authorizationv1.SubjectAccessReview) {
	review.TypeMeta = metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: authorizationv1.SchemeGroupVersion.String()}
	review.Status = authorizationv1.SubjectAccessReviewStatus{}

	name, isAccount := strings.CutPrefix(review.Spec.User, accountPrefix)
	namespace, name, isValid := strings.Cut(name, ":")

	key := client.ObjectKey{Namespace: namespace, Name: name}
	if !isAccount || !isValid || objects.Get(ctx, key, &corev1.ServiceAccount{}) != nil {
		return
	}

	asked := review.Spec.NonResourceAttributes
	review.Status.Allowed = slices.ContainsFunc(rolesOf(ctx, objects, key), func(role string) bool {
		return role == administrator || asked != nil && s.more.AllowsPath != nil && s.more.AllowsPath(role, asked.Verb, asked.Path)
	})
}
