package runtimes

import (
	"context"
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
)

// bindAdmins makes those administrators of a runtime for whom Gardener issues admin kubeconfigs, as a gardenlet does.
func bindAdmins(ctx context.Context, admin *rest.Config) error {
	client, err := rbacclient.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("make the client that binds the administrators of a runtime: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: v1beta1constants.ShootProjectAdminsGroupName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	for _, group := range []string{v1beta1constants.ShootProjectAdminsGroupName, v1beta1constants.ShootSystemAdminsGroupName} {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	_, err = client.ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("bind the administrators of a runtime: %w", err)
	}
	return nil
}
