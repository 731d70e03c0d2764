//nolint:staticcheck // spec.dns.providers is deprecated in favor of an extension that an installation may lack.
package shoot

import (
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const (
	// The name of Gardener's access restriction for the EU, and its options for nodes and for add-ons.
	euAccessOnly   = "eu-access-only"
	euAccessNodes  = "support.gardener.cloud/eu-access-for-cluster-nodes"
	euAccessAddons = "support.gardener.cloud/eu-access-for-cluster-addons"

	// assuredRegion is a region of Google Cloud whose Seeds have the taint assuredWorkload.
	assuredRegion   = "me-central2"
	assuredWorkload = "ksa-assured-workload"
)

// accessRestrictionsOf returns the restriction that only operators in the EU may access the cluster, if the order sets EUAccess.
// Kyma Provisioner sets an annotation instead, which Gardener no longer supports.
func accessRestrictionsOf(config *spec.Cluster) []gardencorev1beta1.AccessRestrictionWithOptions {
	if !ptr.Deref(config.EUAccess, false) {
		return nil
	}

	return []gardencorev1beta1.AccessRestrictionWithOptions{{
		AccessRestriction: gardencorev1beta1.AccessRestriction{Name: euAccessOnly},
		Options:           map[string]string{euAccessNodes: "true", euAccessAddons: "true"},
	}}
}

// tolerationsOf returns the toleration that a Shoot in assuredRegion needs for the tainted Seeds there, or nil for other regions.
// Without it, Gardener would find no Seed for such a Shoot.
func tolerationsOf(config *spec.Cluster) []gardencorev1beta1.Toleration {
	if config.Region != assuredRegion {
		return nil
	}

	return []gardencorev1beta1.Toleration{{Key: assuredWorkload}}
}

// DNSUnmanaged is the type of the DNS provider of a domain whose records Gardener does not manage.
const DNSUnmanaged = "unmanaged"

// dnsOf returns the domain of the cluster and the DNS providers that manage it. If it returns nil, Gardener chooses the domain.
func dnsOf(order *spec.DNS) *gardencorev1beta1.DNS {
	if order == nil {
		return nil
	}

	dns := &gardencorev1beta1.DNS{Domain: &order.Domain}

	for _, provider := range order.Providers {
		wanted := gardencorev1beta1.DNSProvider{Type: &provider.Type, Primary: &provider.Primary, Domains: domainsOf(provider)}

		if provider.Type != DNSUnmanaged {
			wanted.CredentialsRef = &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: provider.SecretName}
		}

		dns.Providers = append(dns.Providers, wanted)
	}

	return dns
}

// domainsOf returns the domains that the DNS provider manages, or nil for all domains.
func domainsOf(provider *spec.DNSProvider) *gardencorev1beta1.DNSIncludeExclude {
	if len(provider.DomainsInclude) == 0 {
		return nil
	}

	return &gardencorev1beta1.DNSIncludeExclude{Include: provider.DomainsInclude}
}

// providerOf returns the provider of the Shoot with its configurations and all worker pools. SSH access to machines is always
// disabled.
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

// WorkerPool is the name of the first worker pool, as in Kyma Provisioner, unless the Shoot was adopted. A different name would make
// Gardener replace all machines of the pool.
const WorkerPool = "cpu-worker-0"

// FirstPool returns the worker pool that the cluster's own fields describe. Orders list only the additional pools.
func FirstPool(config *spec.Cluster) *spec.WorkerPool {
	name := WorkerPool
	if config.Adopted != nil {
		name = config.Adopted.WorkerPool
	}

	return &spec.WorkerPool{
		Name: name, MachineType: config.MachineType,
		MachineImage: config.MachineImage, MachineImageVersion: config.MachineImageVersion,
		DiskType: config.DiskType, VolumeSizeGB: config.VolumeSizeGB,
		AutoScalerMin: config.AutoScalerMin, AutoScalerMax: config.AutoScalerMax,
		MaxSurge: config.MaxSurge, MaxUnavailable: config.MaxUnavailable,
	}
}

// pools returns all worker pools, starting with FirstPool. An additional pool without a machine image gets the image of the first
// pool.
func pools(config *spec.Cluster) []*spec.WorkerPool {
	pools := []*spec.WorkerPool{FirstPool(config)}

	for _, pool := range config.AdditionalWorkers {
		whole := *pool
		if nonEmpty(whole.MachineImage) == nil {
			whole.MachineImage, whole.MachineImageVersion = config.MachineImage, config.MachineImageVersion
		}

		pools = append(pools, &whole)
	}

	return pools
}

// Zones returns the names of the cluster's zones, as worker pools refer to them. It returns nil if the order has no part for its
// provider.
func Zones(config *spec.Cluster) []string {
	cloud, err := cloudOf(config, Options{})
	if err != nil {
		return nil
	}

	return cloud.zones
}

// workerOf returns the worker pool for the Shoot. A pool without zones gets all zones of the cluster. If the disk's type or size
// is missing, Gardener chooses the disk.
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

	if image := nonEmpty(pool.MachineImage); image != nil {
		worker.Machine.Image = &gardencorev1beta1.ShootMachineImage{Name: *image, Version: nonEmpty(pool.MachineImageVersion)}
	}

	if disk := nonEmpty(pool.DiskType); disk != nil && pool.VolumeSizeGB != nil {
		worker.Volume = &gardencorev1beta1.Volume{Type: disk, VolumeSize: fmt.Sprintf("%dGi", *pool.VolumeSizeGB)}
	}

	return worker, nil
}
