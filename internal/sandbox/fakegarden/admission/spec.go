package admission

import (
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validate returns what is wrong with a Shoot by itself.
func validate(old, shoot *gardencorev1beta1.Shoot) field.ErrorList {
	var problems field.ErrorList
	if old.UID == "" {
		problems = append(problems, validateName(shoot.Name, field.NewPath("metadata", "name"))...)
	} else {
		problems = append(problems, validateUpdate(old, shoot)...)
	}
	return append(problems, validateSpec(&shoot.Spec, field.NewPath("spec"))...)
}

func validateName(name string, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, problem := range validation.NameIsDNSLabel(name, false) {
		problems = append(problems, field.Invalid(path, name, problem))
	}
	if strings.Contains(name, "--") {
		problems = append(problems, field.Invalid(path, name, "name may not contain two consecutive hyphens"))
	}
	return problems
}

func validateSpec(spec *gardencorev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	problems = append(problems, validateRetiredFields(spec, path)...)
	if spec.CloudProfile == nil || spec.CloudProfile.Name == "" {
		problems = append(problems, field.Required(path.Child("cloudProfile", "name"), "must specify a cloud profile"))
	}
	if spec.Provider.Type == "" {
		problems = append(problems, field.Required(path.Child("provider", "type"), "must specify a provider type"))
	}
	if spec.Kubernetes.Version == "" {
		problems = append(problems, field.Required(path.Child("kubernetes", "version"), "kubernetes version must not be empty"))
	}
	if spec.Region == "" {
		problems = append(problems, field.Required(path.Child("region"), "must specify a region"))
	}
	if len(spec.Provider.Workers) > 0 {
		problems = append(problems, validateCredentials(spec, path)...)
		if spec.Networking == nil || spec.Networking.Type == nil || *spec.Networking.Type == "" {
			problems = append(problems, field.Required(path.Child("networking", "type"), "networking type must be provided"))
		}
	}
	problems = append(problems, validatePurpose(spec.Purpose, path.Child("purpose"))...)
	for i := range spec.Provider.Workers {
		problems = append(problems, validateWorker(&spec.Provider.Workers[i], path.Child("provider", "workers").Index(i))...)
	}
	return problems
}

func validateCredentials(spec *gardencorev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	secret, credentials := present(secretBindingName(spec)), present(spec.CredentialsBindingName)
	switch {
	case !secret && !credentials:
		return field.ErrorList{field.Required(path.Child("secretBindingName"), "must be set when credentialsBindingName is not")}
	case secret && credentials:
		return field.ErrorList{field.Forbidden(path.Child("secretBindingName"), "is incompatible with credentialsBindingName")}
	}
	return nil
}

func validatePurpose(purpose *gardencorev1beta1.ShootPurpose, path *field.Path) field.ErrorList {
	allowed := []gardencorev1beta1.ShootPurpose{
		gardencorev1beta1.ShootPurposeDevelopment, gardencorev1beta1.ShootPurposeEvaluation,
		gardencorev1beta1.ShootPurposeProduction, gardencorev1beta1.ShootPurposeTesting,
	}
	if purpose == nil || slices.Contains(allowed, *purpose) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *purpose, allowed)}
}

func validateWorker(worker *gardencorev1beta1.Worker, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, problem := range validation.NameIsDNSLabel(worker.Name, false) {
		problems = append(problems, field.Invalid(path.Child("name"), worker.Name, problem))
	}
	if worker.Machine.Type == "" {
		problems = append(problems, field.Required(path.Child("machine", "type"), "must specify a machine type"))
	}
	if worker.Minimum < 0 {
		problems = append(problems, field.Invalid(path.Child("minimum"), worker.Minimum, "minimum value must not be negative"))
	}
	if worker.Maximum < 0 {
		problems = append(problems, field.Invalid(path.Child("maximum"), worker.Maximum, "maximum value must not be negative"))
	}
	if worker.Maximum < worker.Minimum {
		problems = append(problems, field.Forbidden(path.Child("maximum"), "maximum value must not be less than minimum value"))
	}
	return problems
}

func present(value *string) bool {
	return value != nil && *value != ""
}
