package orders

import (
	"cmp"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// The default sizes of a cluster, in machines. They suit evaluation clusters.
const (
	defaultMinimum = 1
	defaultMaximum = 3
	defaultSurge   = 1
)

// Defaults are the values that a cluster gets if its order omits them.
type Defaults struct {
	// KubernetesVersion may be empty. Orders must then contain a version.
	KubernetesVersion string
	// MachineTypes maps providers to machine types. Orders for other providers must contain a type.
	MachineTypes map[string]string
}

// completed returns the order with the defaults for the values that it omits. It does not modify the order. The stored order contains
// the defaults, so that later changes of the configuration do not affect existing clusters.
func (d Defaults) completed(order spec.Runtime) spec.Runtime {
	if order.ClusterConfig == nil || order.ClusterConfig.GardenerConfig == nil {
		return order
	}

	config, cluster := *order.ClusterConfig, *order.ClusterConfig.GardenerConfig
	cluster.KubernetesVersion = cmp.Or(cluster.KubernetesVersion, d.KubernetesVersion)
	cluster.MachineType = cmp.Or(cluster.MachineType, d.MachineTypes[cluster.Provider])

	if cluster.AutoScalerMax == 0 {
		cluster.AutoScalerMin = cmp.Or(cluster.AutoScalerMin, defaultMinimum)
		cluster.AutoScalerMax = max(defaultMaximum, cluster.AutoScalerMin, zones(cluster.ProviderSpecificConfig))
	}

	if cluster.MaxSurge == 0 && cluster.MaxUnavailable == 0 {
		cluster.MaxSurge = defaultSurge
	}

	config.GardenerConfig, order.ClusterConfig = &cluster, &config

	return order
}

// zones returns the number of zones in an order. The order may be invalid, because it has not been validated yet.
func zones(provider *spec.Provider) int {
	count := 0

	if provider == nil {
		return count
	}

	if provider.AWSConfig != nil {
		count = max(count, len(provider.AWSConfig.AWSZones))
	}

	if provider.AzureConfig != nil {
		count = max(count, len(provider.AzureConfig.AzureZones), len(provider.AzureConfig.Zones))
	}

	if provider.GCPConfig != nil {
		count = max(count, len(provider.GCPConfig.Zones))
	}

	if provider.OpenStackConfig != nil {
		count = max(count, len(provider.OpenStackConfig.Zones))
	}

	return count
}
