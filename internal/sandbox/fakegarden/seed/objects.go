package seed

import (
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Domain completes the domains of runtimes: <shoot>.<project>.<Domain>. Nothing resolves it.
	Domain = "runtimes.test"

	// ExposureClass is the one that control planes of openstack are reached by.
	ExposureClass = "converged-cloud-internet"

	gardenNamespace = v1beta1constants.GardenNamespace
	dnsProvider     = "local"
)

// Namespace returns the namespace in which the Shoots of a project live.
func Namespace(project string) string {
	return "garden-" + project
}

// Objects returns what a garden with one project begins with, in an order in which it can be created.
func Objects(project string) []client.Object {
	return slices.Concat(grounds(project), offered(), registrations(), access(project))
}

// grounds are the namespaces, domains and the project.
func grounds(project string) []client.Object {
	return []client.Object{
		namespace(gardenNamespace, nil),
		namespace(Namespace(project), map[string]string{
			v1beta1constants.GardenRole:  v1beta1constants.GardenRoleProject,
			v1beta1constants.ProjectName: project,
		}),
		domain("default-domain", Domain),
		domain("internal-domain", "internal."+Domain),
		theProject(project),
	}
}

// offered are the CloudProfiles, and the controllers that make of them what they say.
func offered() []client.Object {
	var objects []client.Object
	for _, offer := range offers() {
		objects = append(objects, offer.cloudProfile(), registration(offer.provider, "ControlPlane", "Infrastructure", "Worker"))
	}
	return append(objects, &gardencorev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: ExposureClass}, Handler: "internet"})
}

// access is what a project needs to order from the providers.
func access(project string) []client.Object {
	var objects []client.Object
	for _, provider := range Providers() {
		objects = append(objects, credentials(project, provider), binding(project, provider))
	}
	return objects
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func theProject(name string) *gardencorev1beta1.Project {
	return &gardencorev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencorev1beta1.ProjectSpec{
			Namespace:   new(Namespace(name)),
			Description: new("Runtimes of the local garden"),
			Owner:       &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "garden"},
			Tolerations: &gardencorev1beta1.ProjectTolerations{
				// Seeds in the region me-central2 of gcp are tainted.
				Whitelist: []gardencorev1beta1.Toleration{{Key: "ksa-assured-workload"}},
			},
		},
	}
}

// domain returns a Secret from which Gardener learns a domain to put runtimes under; its name is also its role.
func domain(role, domain string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: gardenNamespace,
			Name:      role,
			Labels:    map[string]string{v1beta1constants.GardenRole: role},
			Annotations: map[string]string{
				"dns.gardener.cloud/provider": dnsProvider,
				"dns.gardener.cloud/domain":   domain,
			},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

// credentials returns the Secret behind a CredentialsBinding. A local garden creates nothing at a provider, so it holds none.
func credentials(project, provider string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace(project), Name: provider},
		Type:       corev1.SecretTypeOpaque,
	}
}

func binding(project, provider string) *securityv1alpha1.CredentialsBinding {
	return &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace(project), Name: provider},
		Provider:   securityv1alpha1.CredentialsBindingProvider{Type: provider},
		CredentialsRef: corev1.ObjectReference{
			APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret", Namespace: Namespace(project), Name: provider,
		},
	}
}
