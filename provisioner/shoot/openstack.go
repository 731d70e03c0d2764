package shoot

import (
	"cmp"

	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// groupOpenStack is the API group of Gardener's extension for OpenStack, without the suffix .extensions.gardener.cloud.
const groupOpenStack = "openstack.provider"

// The defaults for OpenStack orders. They are the constants of Kyma Provisioner, so existing clients get the same clusters.
const (
	openStackProfile       = "converged-cloud-kyma"
	openStackFloatingPool  = "FloatingIP-external-kyma-01"
	openStackExposureClass = "converged-cloud-internet"
)

// openStackCloud returns the OpenStack-specific part of a Shoot. The order may replace all defaults, including the exposure
// class. The floating pool provides the cluster's external addresses.
func openStackCloud(config *spec.OpenStack, workers string) *cloud {
	return &cloud{
		profile: cmp.Or(ptr.Deref(config.CloudProfileName, ""), openStackProfile),
		nodes:   workers, zones: config.Zones, exposureClass: openStackExposureClass,
		infrastructure: extensionConfig(groupOpenStack, "InfrastructureConfig", fields{
			"floatingPoolName": cmp.Or(ptr.Deref(config.FloatingPoolName, ""), openStackFloatingPool),
			"networks":         fields{"workers": workers},
		}),
		controlPlane: extensionConfig(groupOpenStack, "ControlPlaneConfig", fields{"loadBalancerProvider": config.LoadBalancerProvider}),
	}
}
