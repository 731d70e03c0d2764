package localgarden

import (
	"context"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/process"
)

const (
	// prepareTimeout is how long the admission plugins may take to see the seed objects.
	prepareTimeout = time.Minute

	// member is the user name in the services' kubeconfig. This user is a member of the project and has no other rights in the
	// garden.
	member = "garden"

	// memberRole and readerRole are the names that Gardener uses for these roles.
	memberRole = "gardener.cloud:system:project-member"
	readerRole = "gardener.cloud:system:read-global-resources"
)

// rights returns the roles that Gardener grants to project members, restricted to the resources that a client of Shoots needs. In
// production, the gardener-controller-manager creates these roles. If a right is missing here, the end-to-end tests with this
// garden fail.
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
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: member}},
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

// grant creates the roles or replaces those of an earlier start.
func grant(ctx context.Context, admin client.Client, project string) error {
	for _, role := range rights(project) {
		err := admin.Create(ctx, role)
		if apierrors.IsAlreadyExists(err) {
			err = admin.Update(ctx, role)
		}
		if err != nil {
			return fmt.Errorf("granting %T %s: %w", role, role.GetName(), err)
		}
	}
	return nil
}

// prepareProject creates the seed objects and the member's rights, and waits until the garden accepts a Shoot. Gardener's
// admission plugins read objects from caches, so they reject Shoots until the caches contain the new objects.
func prepareProject(ctx context.Context, admin client.Client, project string) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	if err := process.Until(ctx, "the seed is applied", func(ctx context.Context) error {
		return fakegarden.Seed(ctx, admin, project)
	}); err != nil {
		return err
	}
	if err := grant(ctx, admin, project); err != nil {
		return err
	}
	return process.Until(ctx, "a Shoot is accepted", func(ctx context.Context) error {
		return admin.Create(ctx, sampleShoot(project), client.DryRunAll)
	})
}

// sampleShoot returns a small Shoot for a dry run. It refers to seed objects, so the admission succeeds only when the plugins
// know these objects.
func sampleShoot(project string) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: gardenlet.Namespace(project), GenerateName: "sample-"},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile:           &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "gcp"},
			CredentialsBindingName: new("gcp"),
			Region:                 "europe-west3",
			Networking:             &gardencorev1beta1.Networking{Type: new("calico"), Nodes: new("10.250.0.0/16")},
			Provider: gardencorev1beta1.Provider{
				Type: "gcp",
				Workers: []gardencorev1beta1.Worker{{
					Name:    "worker",
					Minimum: 1,
					Maximum: 1,
					Machine: gardencorev1beta1.Machine{Type: "n2-standard-2"},
					Volume:  &gardencorev1beta1.Volume{Type: new("pd-standard"), VolumeSize: "50Gi"},
					Zones:   []string{"europe-west3-a"},
				}},
			},
		},
	}
}
