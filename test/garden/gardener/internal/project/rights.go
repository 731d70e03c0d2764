package project

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

const (
	// Member is the user who may do in the project what its members may, and nothing else in the garden.
	Member = "garden"

	memberRole = "gardener.cloud:system:project-member"
	readerRole = "gardener.cloud:system:read-global-resources"
)

// rights returns the roles that Gardener's operator and controllers give to the member of a project, as far as Shoots need them.
func rights(project string) []client.Object {
	everything := []string{"create", "delete", "deletecollection", "get", "list", "watch", "patch", "update"}
	reading := []string{"get", "list", "watch"}
	return []client.Object{
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: memberRole},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets", "configmaps"}, Verbs: everything},
				{APIGroups: []string{corev1.GroupName}, Resources: []string{"events"}, Verbs: reading},
				{APIGroups: []string{gardencorev1beta1.GroupName}, Resources: []string{"shoots"}, Verbs: everything},
				{APIGroups: []string{gardencorev1beta1.GroupName}, Resources: []string{"shoots/adminkubeconfig"}, Verbs: []string{"create"}},
				{APIGroups: []string{securityv1alpha1.GroupName}, Resources: []string{"credentialsbindings"}, Verbs: everything},
			},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: gardenlet.Namespace(project), Name: memberRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: memberRole},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: Member}},
		},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: readerRole},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{gardencorev1beta1.GroupName}, Resources: []string{"cloudprofiles", "exposureclasses", "seeds"}, Verbs: reading},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: readerRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: readerRole},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
		},
	}
}

// grant creates the roles, or replaces those of an earlier garden in the same folder.
func grant(ctx context.Context, admin client.Client, project string) error {
	for _, role := range rights(project) {
		err := admin.Create(ctx, role)
		if apierrors.IsAlreadyExists(err) {
			err = admin.Update(ctx, role)
		}
		if err != nil {
			return fmt.Errorf("grant %T %s: %w", role, role.GetName(), err)
		}
	}
	return nil
}
