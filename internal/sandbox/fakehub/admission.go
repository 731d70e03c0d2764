package fakehub

import (
	"context"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

// maxName is the maximum length of the name of a Bundle or BundleDeployment.
const maxName = 63

// admit checks the rules of the CustomResourceDefinitions that users break most easily: names have a limited length, provisioner
// classes are DNS labels, a source sets exactly the field of its type, and a Bundle's spec does not change. The messages are
// those in the definitions.
func admit(_ context.Context, _ client.Reader, old, object client.Object) error {
	var problems field.ErrorList

	spec := field.NewPath("spec")

	switch changed := object.(type) {
	case *v1alpha1.Bundle:
		problems = append(checkName(changed, "a Bundle"), checkTemplate(spec, changed.Spec.ProvisionerClassName, changed.Spec.Source)...)

		if former, exists := old.(*v1alpha1.Bundle); exists && !apiequality.Semantic.DeepEqual(former.Spec, changed.Spec) {
			problems = append(problems, field.Invalid(spec, "", "the spec of a Bundle cannot change: create another Bundle"))
		}
	case *v1alpha1.BundleDeployment:
		template := changed.Spec.Template.Spec
		problems = append(checkName(changed, "a BundleDeployment"), checkClass(spec, changed.Spec.ProvisionerClassName)...)
		problems = append(problems, checkTemplate(spec.Child("template", "spec"), template.ProvisionerClassName, template.Source)...)
	default:
		return nil
	}

	if len(problems) == 0 {
		return nil
	}

	return apierrors.NewInvalid(object.GetObjectKind().GroupVersionKind().GroupKind(), object.GetName(), problems)
}

func checkName(object client.Object, kind string) field.ErrorList {
	if len(object.GetName()) <= maxName {
		return nil
	}

	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), object.GetName(), "the name of "+kind+" must have at most 63 characters")}
}

func checkClass(path *field.Path, class string) (problems field.ErrorList) {
	for _, problem := range validation.IsDNS1123Label(class) {
		problems = append(problems, field.Invalid(path.Child("provisionerClassName"), class, problem))
	}

	return problems
}

func checkTemplate(path *field.Path, class string, source v1alpha1.BundleSource) field.ErrorList {
	problems := checkClass(path, class)
	path = path.Child("source")

	present := map[v1alpha1.SourceType]bool{
		v1alpha1.SourceTypeImage: source.Image != nil, v1alpha1.SourceTypeGit: source.Git != nil, v1alpha1.SourceTypeHTTP: source.HTTP != nil,
		v1alpha1.SourceTypeConfigMaps: len(source.ConfigMaps) > 0, v1alpha1.SourceTypeUpload: source.Upload != nil,
	}

	types := slices.Sorted(maps.Keys(present))

	if !slices.Contains(types, source.Type) {
		problems = append(problems, field.NotSupported(path.Child("type"), source.Type, types))
	}

	for _, kind := range types {
		if present[kind] != (source.Type == kind) {
			problems = append(problems, field.Invalid(path, source.Type, "source."+string(kind)+" must be set if, and only if, type is "+string(kind)))
		}
	}

	return problems
}
