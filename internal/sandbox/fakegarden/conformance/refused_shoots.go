package conformance

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusedShoots are Shoots that cannot be created.
func refusedShoots() []rejection {
	return append(wronglyNamed(), append(notOffered(), retired()...)...)
}

// wronglyNamed are Shoots that are incomplete or refer to what is not there.
func wronglyNamed() []rejection {
	return []rejection{
		{
			name:    "long name",
			reason:  "the names of project and shoot have at most 21 characters together",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Name = "a-name-that-is-too-long" }),
			want:    metav1.StatusReasonInvalid,
			text:    "must not exceed 21 characters",
		},
		{
			name:    "two hyphens",
			reason:  "two hyphens separate the parts of technical IDs",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Name = "c--1" }),
			want:    metav1.StatusReasonInvalid,
			text:    "two consecutive hyphens",
		},
		{
			name:    "no credentials",
			reason:  "a runtime with workers needs credentials",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.CredentialsBindingName = nil }),
			want:    metav1.StatusReasonInvalid,
			text:    "must be set when credentialsBindingName is not",
		},
		{
			name:    "unknown credentials",
			reason:  "the credentials binding does not exist",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.CredentialsBindingName = new("nobody") }),
			want:    metav1.StatusReasonForbidden,
			text:    `"nobody" not found`,
		},
		{
			name:    "credentials for another provider",
			reason:  "the credentials are for azure, the shoot is for aws",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.CredentialsBindingName = new("azure") }),
			want:    metav1.StatusReasonForbidden,
			text:    "provider type in shoot must match provider type of referenced CredentialsBinding",
		},
		{
			name:    "unknown cloud profile",
			reason:  "the cloud profile does not exist",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.CloudProfile.Name = "nowhere" }),
			want:    metav1.StatusReasonInternalError,
			text:    "could not find referenced cloud profile",
		},
		{
			name:   "authentication that is not there",
			reason: "the config map with the authentication configuration has to be created first",
			request: creating(func(shoot *gardencorev1beta1.Shoot) {
				shoot.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{
					StructuredAuthentication: &gardencorev1beta1.StructuredAuthentication{ConfigMapName: "nothing"},
				}
			}),
			want: metav1.StatusReasonForbidden,
			text: "failed to resolve structured authentication config map reference",
		},
		{
			name:   "unknown extension",
			reason: "no controller is registered for the extension",
			request: creating(func(shoot *gardencorev1beta1.Shoot) {
				shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: "teleporter"}}
			}),
			want: metav1.StatusReasonForbidden,
			text: "given Shoot uses non-registered extension type",
		},
		{
			name:   "toleration that the project does not allow",
			reason: "the project lists the tolerations that its shoots may have",
			request: creating(func(shoot *gardencorev1beta1.Shoot) {
				shoot.Spec.Tolerations = []gardencorev1beta1.Toleration{{Key: "everything"}}
			}),
			want: metav1.StatusReasonForbidden,
			text: "only the following tolerations are allowed",
		},
	}
}

// notOffered are Shoots that ask for what the cloud profile does not have.
func notOffered() []rejection {
	return []rejection{
		{
			name:    "unknown machine type",
			reason:  "the provider has no such machines",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Provider.Workers[0].Machine.Type = "m5.monster" }),
			want:    metav1.StatusReasonForbidden,
			text:    `spec.provider.workers[0].machine.type: Unsupported value: "m5.monster"`,
		},
		{
			name:   "unknown machine image",
			reason: "the provider has no such image",
			request: creating(func(shoot *gardencorev1beta1.Shoot) {
				shoot.Spec.Provider.Workers[0].Machine.Image = &gardencorev1beta1.ShootMachineImage{Name: "gardenlinux", Version: new("1.2.3")}
			}),
			want: metav1.StatusReasonForbidden,
			text: `spec.provider.workers[0].machine.image.version: Unsupported value: "1.2.3"`,
		},
		{
			name:    "unknown volume type",
			reason:  "the provider has no such volumes",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Provider.Workers[0].Volume.Type = new("tape") }),
			want:    metav1.StatusReasonForbidden,
			text:    `spec.provider.workers[0].volume.type: Unsupported value: "tape"`,
		},
		{
			name:    "unknown region",
			reason:  "the provider is not there",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Region = "mars-north-1" }),
			want:    metav1.StatusReasonForbidden,
			text:    `spec.region: Unsupported value: "mars-north-1"`,
		},
		{
			name:    "zone of another region",
			reason:  "workers run in zones of the region",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Provider.Workers[0].Zones = []string{"eu-west-1a"} }),
			want:    metav1.StatusReasonForbidden,
			text:    `spec.provider.workers[0].zones[0]: Unsupported value: "eu-west-1a"`,
		},
		{
			name:    "unknown Kubernetes version",
			reason:  "the provider does not offer that version",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Kubernetes.Version = "1.35.99" }),
			want:    metav1.StatusReasonForbidden,
			text:    `spec.kubernetes.version: Unsupported value: "1.35.99"`,
		},
		{
			name:    "fewer machines at most than at least",
			reason:  "the bounds of the autoscaler contradict each other",
			request: creating(func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Provider.Workers[0].Maximum = 0 }),
			want:    metav1.StatusReasonInvalid,
			text:    "maximum value must not be less than minimum value",
		},
		{
			name:   "access restriction outside of the EU",
			reason: "the region does not offer the restriction",
			request: creating(func(shoot *gardencorev1beta1.Shoot) {
				shoot.Spec.Region = "us-west-1"
				shoot.Spec.Provider.Workers[0].Zones = []string{"us-west-1a"}
				shoot.Spec.AccessRestrictions = []gardencorev1beta1.AccessRestrictionWithOptions{
					{AccessRestriction: gardencorev1beta1.AccessRestriction{Name: "eu-access-only"}},
				}
			}),
			want: metav1.StatusReasonForbidden,
			text: `spec.accessRestrictions[0]: Unsupported value: "eu-access-only"`,
		},
	}
}
