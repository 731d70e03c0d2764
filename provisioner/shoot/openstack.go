package shoot

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const groupOpenStack = "openstack.provider"

// The defaults of orders for OpenStack, as in Kyma Provisioner.
const (
	openStackProfile       = "converged-cloud-kyma"
	openStackFloatingPool  = "FloatingIP-external-kyma-01"
	openStackExposureClass = "converged-cloud-internet"
)

type openStackInfrastructure struct {
	metav1.TypeMeta `json:",inline"`

	// FloatingPoolName is the pool of the external addresses of the cluster.
	FloatingPoolName string            `json:"floatingPoolName"`
	Networks         openStackNetworks `json:"networks"`
}

type openStackNetworks struct {
	Workers string `json:"workers"`
}

type openStackControlPlane struct {
	metav1.TypeMeta `json:",inline"`

	LoadBalancerProvider string `json:"loadBalancerProvider"`
}

// openStackCloud returns the part for OpenStack. The exposure class is a default; an order may name another.
func openStackCloud(config *spec.OpenStack, workers string) *cloud {
	return &cloud{
		profile: cmp.Or(valueOr(config.CloudProfileName, ""), openStackProfile),
		nodes:   workers, zones: config.Zones, exposureClass: openStackExposureClass,
		infrastructure: openStackInfrastructure{
			TypeMeta:         typeMeta(groupOpenStack, "InfrastructureConfig"),
			FloatingPoolName: cmp.Or(valueOr(config.FloatingPoolName, ""), openStackFloatingPool),
			Networks:         openStackNetworks{Workers: workers},
		},
		controlPlane: openStackControlPlane{
			TypeMeta: typeMeta(groupOpenStack, "ControlPlaneConfig"), LoadBalancerProvider: config.LoadBalancerProvider,
		},
	}
}
