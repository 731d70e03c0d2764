package fakegarden

import (
	"context"
	"errors"
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxNames is the maximum combined length of a project's and a Shoot's name, in characters. Gardener derives longer names from
// them, for example the names of namespaces and virtual machines.
const maxNames = 21

// allow rejects a Shoot that refers to missing objects, or that requests something that its project or provider does not offer.
// An update that changes neither the spec nor the finalizer is always allowed, even if a referenced object no longer exists.
// Otherwise, the gardenlet could not write the status or complete the deletion of the Shoot. The rules are in the order of
// Gardener's plugins.
func (a admission) allow(ctx context.Context, old, shoot *gardencorev1beta1.Shoot) error {
	if err := keepsFinalizer(old, shoot); err != nil {
		return err
	}
	if old.UID != "" && apiequality.Semantic.DeepEqual(old.Spec, shoot.Spec) {
		return nil
	}
	if err := a.findReferences(ctx, shoot); err != nil {
		return forbidden(shoot, err)
	}
	project, err := a.project(ctx, shoot.Namespace)
	if err != nil {
		return err
	}
	if old.UID == "" && len(project.Name+shoot.Name) > maxNames {
		return apierrors.NewInvalid(gardencorev1beta1.Kind("Shoot"), shoot.Name, field.ErrorList{
			field.Invalid(field.NewPath("name"), shoot.Name, fmt.Sprintf(
				"the length of the shoot name and the project name must not exceed %d characters (project: %s; shoot: %s)",
				maxNames, project.Name, shoot.Name)),
		})
	}
	var found problems
	validateTolerations(&found, project, shoot)
	if err := forbid(shoot, found); err != nil {
		return err
	}
	profile, err := a.cloudProfile(ctx, shoot)
	if err != nil {
		return err
	}
	a.validateProviderType(ctx, &found, profile, shoot)
	validateOffer(&found, profile, old, shoot)
	return forbid(shoot, found)
}

// findReferences returns an error for the first missing object that the Shoot refers to. As in Gardener, the order of the checks
// is fixed, and only one missing object is reported. Gardener does this in its ResourceReferenceManager plugin.
func (a admission) findReferences(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	spec := &shoot.Spec
	find := func(name *string, into client.Object) error {
		if name == nil {
			return nil
		}
		return a.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *name}, into)
	}
	if err := find(spec.CredentialsBindingName, &securityv1alpha1.CredentialsBinding{}); err != nil {
		return err
	}
	if err := find(secretBindingName(spec), secretBinding()); err != nil {
		return err
	}
	if spec.ExposureClassName != nil {
		if err := a.Get(ctx, client.ObjectKey{Name: *spec.ExposureClassName}, &gardencorev1beta1.ExposureClass{}); err != nil {
			return err
		}
	}
	if server := spec.Kubernetes.KubeAPIServer; server != nil && server.StructuredAuthentication != nil {
		if err := find(&server.StructuredAuthentication.ConfigMapName, &corev1.ConfigMap{}); err != nil {
			return fmt.Errorf("failed to resolve structured authentication config map reference: %w", err)
		}
	}
	for _, resource := range spec.Resources {
		kinds := map[string]client.Object{"Secret": &corev1.Secret{}, "ConfigMap": &corev1.ConfigMap{}}
		if into := kinds[resource.ResourceRef.Kind]; into != nil {
			if err := find(&resource.ResourceRef.Name, into); err != nil {
				return fmt.Errorf("failed to resolve resource reference %q: %w", resource.Name, err)
			}
		}
	}
	return a.findExtensions(ctx, shoot)
}

// findExtensions returns an error for each extension of the Shoot that has no registered controller. The provider and the network
// are extensions too. Gardener does this in its ExtensionValidator plugin. A Shoot without worker pools needs neither provider
// nor network.
func (a admission) findExtensions(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	registrations := &gardencorev1beta1.ControllerRegistrationList{}
	if err := a.List(ctx, registrations); err != nil {
		return err
	}
	registered := map[[2]string]bool{} // keyed by kind and type
	for _, registration := range registrations.Items {
		for _, resource := range registration.Spec.Resources {
			registered[[2]string{resource.Kind, resource.Type}] = true
		}
	}
	var missing []error
	need := func(kind, extension, what string, path *field.Path) {
		if !registered[[2]string{kind, extension}] {
			missing = append(missing, fmt.Errorf("given Shoot uses non-registered %s type: %s (%q)", what, path, extension))
		}
	}
	spec := field.NewPath("spec")
	if len(shoot.Spec.Provider.Workers) > 0 {
		need("Infrastructure", shoot.Spec.Provider.Type, "provider", spec.Child("provider", "type"))
		if networking := shoot.Spec.Networking; networking != nil && networking.Type != nil {
			need("Network", *networking.Type, "networking", spec.Child("networking", "type"))
		}
	}
	for i, extension := range shoot.Spec.Extensions {
		need("Extension", extension.Type, "extension", spec.Child("extensions").Index(i).Child("type"))
	}
	return errors.Join(missing...)
}

// project returns the project of a namespace. Like Gardener, it finds the project by its spec, not by the name of the namespace.
// If the namespace has no project, it returns an internal error. In practice this error means that the configured namespace is
// wrong.
func (a admission) project(ctx context.Context, namespace string) (*gardencorev1beta1.Project, error) {
	projects := &gardencorev1beta1.ProjectList{}
	if err := a.List(ctx, projects); err != nil {
		return nil, err
	}
	for i := range projects.Items {
		if name := projects.Items[i].Spec.Namespace; name != nil && *name == namespace {
			return &projects.Items[i], nil
		}
	}
	return nil, apierrors.NewInternalError(fmt.Errorf("could not find referenced project: no project has the namespace %q", namespace))
}

// validateTolerations rejects tolerations that the project does not list. Tolerations let a Shoot run on tainted seeds, so a
// project needs permission to use them. Gardener does this in its ShootTolerationRestriction plugin.
func validateTolerations(found *problems, project *gardencorev1beta1.Project, shoot *gardencorev1beta1.Shoot) {
	var allowed []string
	if project.Spec.Tolerations != nil {
		allowed = names(project.Spec.Tolerations.Whitelist, func(toleration gardencorev1beta1.Toleration) string { return toleration.Key })
	}
	for i, toleration := range shoot.Spec.Tolerations {
		found.add(!slices.Contains(allowed, toleration.Key), field.Forbidden(field.NewPath("spec", "tolerations").Index(i),
			fmt.Sprintf("only the following tolerations are allowed: %+v", allowed)))
	}
}

// validateProviderType rejects a Shoot whose cloud profile or credentials belong to a different provider. Unlike Gardener, it
// does not check the provider of a deprecated SecretBinding.
func (a admission) validateProviderType(
	ctx context.Context, found *problems, profile *gardencorev1beta1.CloudProfileSpec, shoot *gardencorev1beta1.Shoot,
) {
	path, provider := field.NewPath("spec", "provider", "type"), shoot.Spec.Provider.Type
	if provider != profile.Type {
		found.add(true, field.Invalid(path, provider,
			fmt.Sprintf("provider type in shoot must equal provider type of referenced CloudProfile: %q", profile.Type)))
		return
	}
	if shoot.Spec.CredentialsBindingName == nil {
		return
	}
	binding := &securityv1alpha1.CredentialsBinding{}
	key := client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.CredentialsBindingName}
	err := a.Get(ctx, key, binding) // findReferences has rejected a missing binding
	found.add(err == nil && binding.Provider.Type != provider, field.Invalid(path, provider,
		fmt.Sprintf("provider type in shoot must match provider type of referenced CredentialsBinding: %q", binding.Provider.Type)))
}
