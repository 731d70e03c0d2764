package shoot

import (
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// WorkerPool is the name of the first pool of machines.
const WorkerPool = "cpu-worker-0"

// FirstPool returns the pool of machines that the order itself describes.
func FirstPool(config *spec.Cluster) *spec.WorkerPool {
	return &spec.WorkerPool{
		Name: WorkerPool, MachineType: config.MachineType,
		MachineImage: config.MachineImage, MachineImageVersion: config.MachineImageVersion,
		DiskType: config.DiskType, VolumeSizeGB: config.VolumeSizeGB,
		AutoScalerMin: config.AutoScalerMin, AutoScalerMax: config.AutoScalerMax,
		MaxSurge: config.MaxSurge, MaxUnavailable: config.MaxUnavailable,
	}
}

// pools returns the first pool and those beside it.
func pools(config *spec.Cluster) []*spec.WorkerPool {
	pools := []*spec.WorkerPool{FirstPool(config)}

	for _, pool := range config.AdditionalWorkers {
		whole := *pool
		if given(whole.MachineImage) == nil {
			whole.MachineImage, whole.MachineImageVersion = config.MachineImage, config.MachineImageVersion
		}

		pools = append(pools, &whole)
	}

	return pools
}

// Zones returns the zones of a cluster as its pools name them; nil if the order has no part for its provider.
func Zones(config *spec.Cluster) []string {
	cloud, err := cloudOf(config, Options{})
	if err != nil {
		return nil
	}

	return cloud.zones
}

func workerOf(pool *spec.WorkerPool, cloud *cloud) (*gardencorev1beta1.Worker, error) {
	providerConfig, err := raw(cloud.worker)
	if err != nil {
		return nil, err
	}

	worker := &gardencorev1beta1.Worker{
		Name:           pool.Name,
		Minimum:        int32(pool.AutoScalerMin), //nolint:gosec // Package validation checks the range of all four.
		Maximum:        int32(pool.AutoScalerMax), //nolint:gosec
		MaxSurge:       new(intstr.FromInt(pool.MaxSurge)),
		MaxUnavailable: new(intstr.FromInt(pool.MaxUnavailable)),
		Machine:        gardencorev1beta1.Machine{Type: pool.MachineType},
		Zones:          cloud.zones,
		ProviderConfig: providerConfig,
	}

	if len(pool.Zones) > 0 {
		worker.Zones = pool.Zones
	}

	if image := given(pool.MachineImage); image != nil {
		worker.Machine.Image = &gardencorev1beta1.ShootMachineImage{Name: *image, Version: given(pool.MachineImageVersion)}
	}

	if disk := given(pool.DiskType); disk != nil && pool.VolumeSizeGB != nil {
		worker.Volume = &gardencorev1beta1.Volume{Type: disk, VolumeSize: fmt.Sprintf("%dGi", *pool.VolumeSizeGB)}
	}

	return worker, nil
}
