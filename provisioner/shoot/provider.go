package shoot

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

func providerOf(config *spec.Cluster, cloud *cloud) (*gardencorev1beta1.Provider, error) {
	infrastructure, err := raw(cloud.infrastructure)
	if err != nil {
		return nil, err
	}

	controlPlane, err := raw(cloud.controlPlane)
	if err != nil {
		return nil, err
	}

	provider := &gardencorev1beta1.Provider{
		Type:                 config.Provider,
		InfrastructureConfig: infrastructure,
		ControlPlaneConfig:   controlPlane,
		WorkersSettings:      &gardencorev1beta1.WorkersSettings{SSHAccess: &gardencorev1beta1.SSHAccess{Enabled: false}},
	}

	for _, pool := range pools(config) {
		worker, err := workerOf(pool, cloud)
		if err != nil {
			return nil, err
		}

		provider.Workers = append(provider.Workers, *worker)
	}

	return provider, nil
}
