package admission

import (
	"strings"

	"github.com/Masterminds/semver/v3"
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
	secret, credentials := present(spec.SecretBindingName), present(spec.CredentialsBindingName)
	switch {
	case !secret && !credentials:
		return field.ErrorList{field.Required(path.Child("secretBindingName"), "must be set when credentialsBindingName is not")}
	case secret && credentials:
		return field.ErrorList{field.Forbidden(path.Child("secretBindingName"), "is incompatible with credentialsBindingName")}
	}
	return nil
}

// validateRetiredFields refuses the fields that Gardener takes only for older versions of Kubernetes.
func validateRetiredFields(spec *gardencorev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	version := spec.Kubernetes.Version
	if present(spec.CloudProfileName) && atLeast(version, "1.34") {
		problems = append(problems, field.Forbidden(path.Child("cloudProfileName"),
			"for Kubernetes version >= 1.34, cloudProfileName field is no longer supported, use spec.cloudProfile.name instead"))
	}
	if present(spec.SecretBindingName) && atLeast(version, "1.34") {
		problems = append(problems, field.Forbidden(path.Child("secretBindingName"),
			"for Kubernetes versions >= 1.34, secretBindingName field is no longer supported, use spec.credentialsBindingName instead"))
	}
	if spec.Addons != nil && atLeast(version, "1.35") {
		problems = append(problems, field.Forbidden(path.Child("addons"),
			"for Kubernetes versions >= 1.35, addons field is no longer supported"))
	}
	if autoscaler := spec.Kubernetes.ClusterAutoscaler; autoscaler != nil && autoscaler.MaxEmptyBulkDelete != nil && atLeast(version, "1.33") {
		problems = append(problems, field.Forbidden(path.Child("kubernetes", "clusterAutoscaler", "maxEmptyBulkDelete"),
			"for Kubernetes versions >= 1.33, maxEmptyBulkDelete field is no longer supported, use maxScaleDownParallelism instead"))
	}
	if spec.DNS == nil || !atLeast(version, "1.35") {
		return problems
	}
	for i, provider := range spec.DNS.Providers {
		if provider.SecretName != nil {
			problems = append(problems, field.Forbidden(path.Child("dns", "providers").Index(i).Child("secretName"),
				"for Kubernetes versions >= 1.35, secretName field is no longer supported"))
		}
	}
	return problems
}

func validatePurpose(purpose *gardencorev1beta1.ShootPurpose, path *field.Path) field.ErrorList {
	if purpose == nil {
		return nil
	}
	switch *purpose {
	case gardencorev1beta1.ShootPurposeEvaluation, gardencorev1beta1.ShootPurposeTesting,
		gardencorev1beta1.ShootPurposeDevelopment, gardencorev1beta1.ShootPurposeProduction:
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *purpose, []gardencorev1beta1.ShootPurpose{
		gardencorev1beta1.ShootPurposeDevelopment, gardencorev1beta1.ShootPurposeEvaluation,
		gardencorev1beta1.ShootPurposeProduction, gardencorev1beta1.ShootPurposeTesting,
	})}
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

// atLeast says whether a Kubernetes version belongs to a minor version or a later one.
func atLeast(version, minor string) bool {
	parsed, err := semver.NewVersion(version)
	return err == nil && !parsed.LessThan(semver.MustParse(minor))
}
