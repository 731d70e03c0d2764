//nolint:staticcheck // This file is about the fields that are deprecated.
package conformance

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// retired are Shoots that were acceptable for an older Kubernetes.
func retired() []rejection {
	return []rejection{
		{
			name:   "secret binding",
			reason: "since Kubernetes 1.34 credentials are bound by CredentialsBindings",
			request: creating(func(shoot *gardencorev1beta1.Shoot) {
				shoot.Spec.CredentialsBindingName, shoot.Spec.SecretBindingName = nil, new(provider)
			}),
			want: metav1.StatusReasonInvalid,
			text: "secretBindingName field is no longer supported",
		},
		{
			name:   "cloud profile by its name",
			reason: "since Kubernetes 1.34 cloud profiles are referred to by kind and name",
			request: creating(func(shoot *gardencorev1beta1.Shoot) {
				shoot.Spec.CloudProfile, shoot.Spec.CloudProfileName = nil, new("aws")
			}),
			want: metav1.StatusReasonInvalid,
			text: "cloudProfileName field is no longer supported",
		},
		{
			name:   "addons",
			reason: "since Kubernetes 1.35 there are no addons",
			request: creating(func(shoot *gardencorev1beta1.Shoot) {
				shoot.Spec.Addons = &gardencorev1beta1.Addons{
					NginxIngress: &gardencorev1beta1.NginxIngress{Addon: gardencorev1beta1.Addon{Enabled: true}},
				}
			}),
			want: metav1.StatusReasonInvalid,
			text: "addons field is no longer supported",
		},
		{
			name:   "secret of a DNS provider",
			reason: "since Kubernetes 1.35 the credentials of DNS providers are referred to by credentialsRef",
			request: creating(func(shoot *gardencorev1beta1.Shoot) {
				shoot.Spec.DNS = &gardencorev1beta1.DNS{
					Domain:    new("runtime.example.com"),
					Providers: []gardencorev1beta1.DNSProvider{{Type: new("aws-route53"), SecretName: new(provider), Primary: new(true)}},
				}
			}),
			want: metav1.StatusReasonInvalid,
			text: "secretName field is no longer supported",
		},
	}
}
