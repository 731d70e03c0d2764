package fakegarden

import (
	_ "embed"
	"fmt"

	authenticationv1alpha1 "github.com/gardener/gardener/pkg/apis/authentication/v1alpha1"
	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/kubeapi"
)

// NewScheme returns a scheme with the kinds that both gardens serve (Gardener's and some of Kubernetes'), and Gardener's
// defaults. Each caller gets a new scheme, because clients add kinds to it.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, gardencorev1beta1.AddToScheme, gardencorev1.AddToScheme,
		securityv1alpha1.AddToScheme, authenticationv1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the kinds of the garden: %w", err)
	}
	return scheme, nil
}

// kinds returns the kinds that the fake garden serves: those in seed.yaml, and those that this project and the gardenlet use.
// Requests for other Gardener kinds, such as Seed, return 404.
func kinds() []kubeapi.Kind {
	core, security := corev1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion
	garden := gardencorev1beta1.SchemeGroupVersion
	return []kubeapi.Kind{
		{GroupVersionKind: core.WithKind("Namespace")},
		{GroupVersionKind: core.WithKind("ConfigMap"), Namespaced: true},
		{GroupVersionKind: core.WithKind("Secret"), Namespaced: true},
		{GroupVersionKind: garden.WithKind("CloudProfile"), Status: true},
		{GroupVersionKind: garden.WithKind("ControllerRegistration")},
		{GroupVersionKind: garden.WithKind("ExposureClass")},
		{GroupVersionKind: garden.WithKind("InternalSecret"), Namespaced: true},
		{GroupVersionKind: garden.WithKind("Project"), Status: true},
		{GroupVersionKind: garden.WithKind("SecretBinding"), Namespaced: true},
		{GroupVersionKind: garden.WithKind("Shoot"), Namespaced: true, Status: true},
		{GroupVersionKind: security.WithKind("CredentialsBinding"), Namespaced: true},
	}
}

//go:embed shoot_lists.yaml
var shootLists string

// shootTypes is the type converter for server-side apply. It declares the lists of a Shoot whose items have separate owners, such
// as worker pools, so that two managers can own different items. The types of all other fields and kinds are deduced from the
// content.
type shootTypes struct {
	managedfields.TypeConverter

	shoot typed.ParseableType
}

// newShootTypes parses shoot_lists.yaml. The file replaces a complete schema, which would need Gardener's large OpenAPI
// definitions. A list that is not in the file has one owner, and an apply replaces the whole list.
func newShootTypes() (shootTypes, error) {
	parser, err := typed.NewParser(typed.YAMLObject(shootLists))
	if err != nil {
		return shootTypes{}, fmt.Errorf("parsing the types of a Shoot: %w", err)
	}
	return shootTypes{TypeConverter: managedfields.NewDeducedTypeConverter(), shoot: parser.Type("Shoot")}, nil
}

// ObjectToTyped implements managedfields.TypeConverter. The field manager passes stored Shoots as Go types and applied Shoots as
// unstructured objects. Both must get the same type; otherwise their lists could not be merged.
func (t shootTypes) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	switch object := object.(type) {
	case *gardencorev1beta1.Shoot:
		return t.shoot.FromStructured(object, options...)
	case *unstructured.Unstructured:
		if object.GroupVersionKind() == gardencorev1beta1.SchemeGroupVersion.WithKind("Shoot") {
			return t.shoot.FromUnstructured(object.Object, options...)
		}
	}
	return t.TypeConverter.ObjectToTyped(object, options...)
}
