package project

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// sample returns a small Shoot, which is never created: its acceptance proves that the admission plugins know what they need.
func sample(project string) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: gardenlet.Namespace(project), GenerateName: "sample-"},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile:           &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "gcp"},
			CredentialsBindingName: new("gcp"),
			Region:                 "europe-west3",
			Networking:             &gardencorev1beta1.Networking{Type: new("calico"), Nodes: new("10.250.0.0/16")},
			Provider: gardencorev1beta1.Provider{
				Type: "gcp",
				Workers: []gardencorev1beta1.Worker{{
					Name:    "worker",
					Minimum: 1,
					Maximum: 1,
					Machine: gardencorev1beta1.Machine{Type: "n2-standard-2"},
					Volume:  &gardencorev1beta1.Volume{Type: new("pd-standard"), VolumeSize: "50Gi"},
					Zones:   []string{"europe-west3-a"},
				}},
			},
		},
	}
}
