package shoot

import (
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

// WorkerPool is the name of the one pool of machines.
const WorkerPool = "cpu-worker-0"

func providerOf(config *model.GardenerConfigInput, cloud *cloud) (*gardencorev1beta1.Provider, error) {
	infrastructure, err := raw(cloud.infrastructure)
	if err != nil {
		return nil, err
	}

	controlPlane, err := raw(cloud.controlPlane)
	if err != nil {
		return nil, err
	}

	worker, err := workerOf(config, cloud)
	if err != nil {
		return nil, err
	}

	return &gardencorev1beta1.Provider{
		Type:                 config.Provider,
		InfrastructureConfig: infrastructure,
		ControlPlaneConfig:   controlPlane,
		Workers:              []gardencorev1beta1.Worker{*worker},
		WorkersSettings:      &gardencorev1beta1.WorkersSettings{SSHAccess: &gardencorev1beta1.SSHAccess{Enabled: false}},
	}, nil
}

func workerOf(config *model.GardenerConfigInput, cloud *cloud) (*gardencorev1beta1.Worker, error) {
	providerConfig, err := raw(cloud.worker)
	if err != nil {
		return nil, err
	}

	worker := &gardencorev1beta1.Worker{
		Name:           WorkerPool,
		Minimum:        int32(config.AutoScalerMin), //nolint:gosec // Package validation checks the range of all four.
		Maximum:        int32(config.AutoScalerMax), //nolint:gosec
		MaxSurge:       new(intstr.FromInt(config.MaxSurge)),
		MaxUnavailable: new(intstr.FromInt(config.MaxUnavailable)),
		Machine:        gardencorev1beta1.Machine{Type: config.MachineType},
		Zones:          cloud.zones,
		ProviderConfig: providerConfig,
	}

	if image := given(config.MachineImage); image != nil {
		worker.Machine.Image = &gardencorev1beta1.ShootMachineImage{Name: *image, Version: given(config.MachineImageVersion)}
	}

	if disk := given(config.DiskType); disk != nil && config.VolumeSizeGB != nil {
		worker.Volume = &gardencorev1beta1.Volume{Type: disk, VolumeSize: fmt.Sprintf("%dGi", *config.VolumeSizeGB)}
	}

	return worker, nil
}
