//nolint:staticcheck // This file is about the fields that are deprecated.
package admission

import (
	"github.com/Masterminds/semver/v3"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cloudProfileName is how Shoots named their profile before Kubernetes 1.34.
func cloudProfileName(spec *gardencorev1beta1.ShootSpec) *string { return spec.CloudProfileName }

// secretBindingName is how Shoots named their credentials before Kubernetes 1.34.
func secretBindingName(spec *gardencorev1beta1.ShootSpec) *string { return spec.SecretBindingName }

func secretBinding() client.Object { return &gardencorev1beta1.SecretBinding{} }

// validateRetiredFields refuses the fields that Gardener takes only for older versions of Kubernetes.
func validateRetiredFields(spec *gardencorev1beta1.ShootSpec, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	version := spec.Kubernetes.Version
	if present(cloudProfileName(spec)) && atLeast(version, "1.34") {
		problems = append(problems, field.Forbidden(path.Child("cloudProfileName"),
			"for Kubernetes version >= 1.34, cloudProfileName field is no longer supported, use spec.cloudProfile.name instead"))
	}
	if present(secretBindingName(spec)) && atLeast(version, "1.34") {
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

// atLeast says whether a Kubernetes version belongs to a minor version or a later one.
func atLeast(version, minor string) bool {
	parsed, err := semver.NewVersion(version)
	return err == nil && !parsed.LessThan(semver.MustParse(minor))
}
