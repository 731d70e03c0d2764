package admission

import (
	"github.com/Masterminds/semver/v3"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateUpdate returns what of the change of a Shoot is not possible.
func validateUpdate(old, shoot *gardencorev1beta1.Shoot) field.ErrorList {
	path := field.NewPath("spec")
	before, after := &old.Spec, &shoot.Spec
	if shoot.DeletionTimestamp != nil && !apiequality.Semantic.DeepEqual(before, after) {
		return field.ErrorList{field.Forbidden(path, "cannot update shoot spec if deletion timestamp is set")}
	}
	problems := validation.ValidateImmutableField(after.Region, before.Region, path.Child("region"))
	if before.CredentialsBindingName != nil && !present(after.CredentialsBindingName) {
		problems = append(problems, field.Forbidden(path.Child("credentialsBindingName"), "the field cannot be unset"))
	}
	bound, binds := secretBindingName(before), secretBindingName(after)
	if migrates := present(bound) && binds == nil && present(after.CredentialsBindingName); !migrates {
		problems = append(problems, validation.ValidateImmutableField(binds, bound, path.Child("secretBindingName"))...)
	}
	problems = append(problems,
		validateVersionUpdate(before.Kubernetes.Version, after.Kubernetes.Version, path.Child("kubernetes", "version"))...)
	problems = append(problems,
		validation.ValidateImmutableField(after.Provider.Type, before.Provider.Type, path.Child("provider", "type"))...)
	return append(problems, validateNetworkingUpdate(before.Networking, after.Networking, path.Child("networking"))...)
}

func validateVersionUpdate(before, after string, path *field.Path) field.ErrorList {
	old, err := semver.NewVersion(before)
	if err != nil {
		return nil // What is stored was valid once, so this is the version of a new Shoot.
	}
	wanted, err := semver.NewVersion(after)
	if err != nil {
		return field.ErrorList{field.Invalid(path, after, err.Error())}
	}
	if wanted.LessThan(old) {
		return field.ErrorList{field.Forbidden(path, "kubernetes version downgrade is not supported")}
	}
	if beyond := old.IncMinor().IncMinor(); !wanted.LessThan(&beyond) {
		return field.ErrorList{field.Forbidden(path, "kubernetes version upgrade cannot skip a minor version")}
	}
	return nil
}

func validateNetworkingUpdate(before, after *gardencorev1beta1.Networking, path *field.Path) field.ErrorList {
	switch {
	case before == nil:
		return nil
	case after == nil:
		return field.ErrorList{field.Forbidden(path, "networking cannot be set to nil if it's already set")}
	}
	problems := validation.ValidateImmutableField(after.Type, before.Type, path.Child("type"))
	if before.Pods != nil {
		problems = append(problems, validation.ValidateImmutableField(after.Pods, before.Pods, path.Child("pods"))...)
	}
	if before.Services != nil {
		problems = append(problems, validation.ValidateImmutableField(after.Services, before.Services, path.Child("services"))...)
	}
	return problems
}
