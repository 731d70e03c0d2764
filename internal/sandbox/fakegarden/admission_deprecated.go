//nolint:staticcheck // This file is about deprecated fields.
package fakegarden

import (
	"github.com/Masterminds/semver/v3"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cloudProfileName and secretBindingName return deprecated fields, which Gardener rejects from Kubernetes 1.34 on. All code that
// uses deprecated fields is in this file, so that only this file needs a linter exception.
func cloudProfileName(spec *gardencorev1beta1.ShootSpec) *string  { return spec.CloudProfileName }
func secretBindingName(spec *gardencorev1beta1.ShootSpec) *string { return spec.SecretBindingName }
func secretBinding() client.Object                                { return &gardencorev1beta1.SecretBinding{} }

// validateDeprecated rejects fields that Gardener accepts only for older versions of Kubernetes. This matters in upgrades: a
// Shoot with deprecated fields is valid until its Kubernetes version changes. An invalid version is rejected by other rules.
func validateDeprecated(found *problems, spec *gardencorev1beta1.ShootSpec, path *field.Path) {
	version, err := semver.NewVersion(spec.Kubernetes.Version)
	if err != nil {
		return
	}
	// since reports whether the Shoot's Kubernetes version is at least the given minor version.
	since := func(minor string) bool { return !version.LessThan(semver.MustParse(minor)) }
	found.add(present(spec.CloudProfileName) && since("1.34"), field.Forbidden(path.Child("cloudProfileName"),
		"for Kubernetes version >= 1.34, cloudProfileName field is no longer supported, use spec.cloudProfile.name instead"))
	found.add(present(spec.SecretBindingName) && since("1.34"), field.Forbidden(path.Child("secretBindingName"),
		"for Kubernetes versions >= 1.34, secretBindingName field is no longer supported, use spec.credentialsBindingName instead"))
	found.add(spec.Addons != nil && since("1.35"), field.Forbidden(path.Child("addons"),
		"for Kubernetes versions >= 1.35, addons field is no longer supported"))
	autoscaler := spec.Kubernetes.ClusterAutoscaler
	found.add(autoscaler != nil && autoscaler.MaxEmptyBulkDelete != nil && since("1.33"),
		field.Forbidden(path.Child("kubernetes", "clusterAutoscaler", "maxEmptyBulkDelete"),
			"for Kubernetes versions >= 1.33, maxEmptyBulkDelete field is no longer supported, use maxScaleDownParallelism instead"))
	if spec.DNS == nil {
		return
	}
	for i, provider := range spec.DNS.Providers {
		found.add(provider.SecretName != nil && since("1.35"), field.Forbidden(path.Child("dns", "providers").Index(i).Child("secretName"),
			"for Kubernetes versions >= 1.35, secretName field is no longer supported"))
	}
}
