package shoot

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// keepAdopted copies the fields of an adopted Shoot that orders cannot express and that Build would set to constants of the Provisioner:
// the cloud profile, the networks, additional tolerations, the zones of the first worker pool, and, unless the provider's part of the order
// has changed since the adoption, the configurations for the provider's extension.
func (o *Objects) keepAdopted(present *gardencorev1beta1.Shoot) {
	wanted, had := &o.Shoot.Spec, &present.Spec
	wanted.CloudProfile = had.CloudProfile.DeepCopy()
	wanted.Networking = had.Networking.DeepCopy()
	wanted.Tolerations = withOthers(wanted.Tolerations, had.Tolerations, func(toleration gardencorev1beta1.Toleration) string { return toleration.Key })

	if o.sameProvider {
		wanted.Provider.InfrastructureConfig = had.Provider.InfrastructureConfig.DeepCopy()
		wanted.Provider.ControlPlaneConfig = had.Provider.ControlPlaneConfig.DeepCopy()
	}

	for i := range wanted.Provider.Workers {
		worker := &wanted.Provider.Workers[i]

		for _, before := range had.Provider.Workers {
			if before.Name != worker.Name {
				continue
			}

			if i == 0 {
				worker.Zones = before.Zones
			}

			if o.sameProvider {
				worker.ProviderConfig = before.ProviderConfig.DeepCopy()
			}
		}
	}
}
