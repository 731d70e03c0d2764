package admission

import (
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

// longestName is how long the names of project and Shoot may be together, because the names of much that is made for a runtime begin
// with them.
const longestName = 21

// allow refuses a Shoot that asks for what its project and its provider do not give.
func (r Rules) allow(old, shoot *gardencorev1beta1.Shoot) error {
	if err := keepsFinalizer(old, shoot); err != nil {
		return err
	}
	if old.UID != "" && apiequality.Semantic.DeepEqual(old.Spec, shoot.Spec) {
		return nil
	}
	if err := r.findReferences(shoot); err != nil {
		return forbidden(shoot, err)
	}
	project, err := r.project(shoot.Namespace)
	if err != nil {
		return err
	}
	if old.UID == "" && len(project.Name+shoot.Name) > longestName {
		return apierrors.NewInvalid(gardencorev1beta1.Kind("Shoot"), shoot.Name, field.ErrorList{
			field.Invalid(field.NewPath("name"), shoot.Name, fmt.Sprintf(
				"the length of the shoot name and the project name must not exceed %d characters (project: %s; shoot: %s)",
				longestName, project.Name, shoot.Name)),
		})
	}
	if err := refuse(shoot, tolerated(project, shoot)); err != nil {
		return err
	}
	profile, err := r.cloudProfile(shoot)
	if err != nil {
		return err
	}
	return refuse(shoot, append(r.validateProviderType(profile, shoot), validateOffer(profile, old, shoot)...))
}

// findReferences returns an error if an object is missing that the Shoot names.
func (r Rules) findReferences(shoot *gardencorev1beta1.Shoot) error {
	spec := &shoot.Spec
	if spec.CredentialsBindingName != nil {
		if err := r.find(shoot, *spec.CredentialsBindingName, &securityv1alpha1.CredentialsBinding{}); err != nil {
			return err
		}
	}
	if name := secretBindingName(spec); name != nil {
		if err := r.find(shoot, *name, secretBinding()); err != nil {
			return err
		}
	}
	if spec.ExposureClassName != nil {
		if err := r.objects.Lookup(client.ObjectKey{Name: *spec.ExposureClassName}, &gardencorev1beta1.ExposureClass{}); err != nil {
			return err
		}
	}
	if server := spec.Kubernetes.KubeAPIServer; server != nil && server.StructuredAuthentication != nil {
		if err := r.find(shoot, server.StructuredAuthentication.ConfigMapName, &corev1.ConfigMap{}); err != nil {
			return fmt.Errorf("failed to resolve structured authentication config map reference: %w", err)
		}
	}
	if err := r.findResources(shoot); err != nil {
		return err
	}
	return r.findExtensions(shoot)
}

func (r Rules) find(shoot *gardencorev1beta1.Shoot, name string, into client.Object) error {
	return r.objects.Lookup(client.ObjectKey{Namespace: shoot.Namespace, Name: name}, into)
}

// findResources looks for the Secrets and ConfigMaps that a Shoot hands to its extensions.
func (r Rules) findResources(shoot *gardencorev1beta1.Shoot) error {
	for _, resource := range shoot.Spec.Resources {
		var into client.Object
		switch resource.ResourceRef.Kind {
		case "Secret":
			into = &corev1.Secret{}
		case "ConfigMap":
			into = &corev1.ConfigMap{}
		default:
			continue
		}
		if err := r.find(shoot, resource.ResourceRef.Name, into); err != nil {
			return fmt.Errorf("failed to resolve resource reference %q: %w", resource.Name, err)
		}
	}
	return nil
}

// findExtensions returns an error for each kind of extension that the Shoot needs and that no controller is registered for.
func (r Rules) findExtensions(shoot *gardencorev1beta1.Shoot) error {
	registrations := &gardencorev1beta1.ControllerRegistrationList{}
	if err := r.objects.LookupAll(registrations); err != nil {
		return err
	}
	registered := func(kind, extension string) bool {
		return slices.ContainsFunc(registrations.Items, func(registration gardencorev1beta1.ControllerRegistration) bool {
			return slices.ContainsFunc(registration.Spec.Resources, func(resource gardencorev1beta1.ControllerResource) bool {
				return resource.Kind == kind && resource.Type == extension
			})
		})
	}
	var missing []error
	need := func(kind, extension, what string, path *field.Path) {
		if !registered(kind, extension) {
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

// project returns the project to which a namespace belongs.
func (r Rules) project(namespace string) (*gardencorev1beta1.Project, error) {
	projects := &gardencorev1beta1.ProjectList{}
	if err := r.objects.LookupAll(projects); err != nil {
		return nil, err
	}
	for i := range projects.Items {
		if name := projects.Items[i].Spec.Namespace; name != nil && *name == namespace {
			return &projects.Items[i], nil
		}
	}
	return nil, unexpected("could not find referenced project: no project has the namespace %q", namespace)
}

func tolerated(project *gardencorev1beta1.Project, shoot *gardencorev1beta1.Shoot) field.ErrorList {
	var allowed []string
	if project.Spec.Tolerations != nil {
		for _, toleration := range project.Spec.Tolerations.Whitelist {
			allowed = append(allowed, toleration.Key)
		}
	}
	var problems field.ErrorList
	for i, toleration := range shoot.Spec.Tolerations {
		if !slices.Contains(allowed, toleration.Key) {
			problems = append(problems, field.Forbidden(field.NewPath("spec", "tolerations").Index(i),
				fmt.Sprintf("only the following tolerations are allowed: %+v", allowed)))
		}
	}
	return problems
}

// validateProviderType refuses a Shoot whose profile or credentials are for another provider.
func (r Rules) validateProviderType(profile *gardencorev1beta1.CloudProfileSpec, shoot *gardencorev1beta1.Shoot) field.ErrorList {
	path, provider := field.NewPath("spec", "provider", "type"), shoot.Spec.Provider.Type
	if provider != profile.Type {
		return field.ErrorList{field.Invalid(path, provider,
			fmt.Sprintf("provider type in shoot must equal provider type of referenced CloudProfile: %q", profile.Type))}
	}
	if shoot.Spec.CredentialsBindingName == nil {
		return nil
	}
	binding := &securityv1alpha1.CredentialsBinding{}
	if err := r.find(shoot, *shoot.Spec.CredentialsBindingName, binding); err != nil || binding.Provider.Type == provider {
		return nil // A missing binding was refused before.
	}
	return field.ErrorList{field.Invalid(path, provider,
		fmt.Sprintf("provider type in shoot must match provider type of referenced CredentialsBinding: %q", binding.Provider.Type))}
}
