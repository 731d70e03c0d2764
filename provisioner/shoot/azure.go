package shoot

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

const groupAzure = "azure.provider"

// defaultIdleTimeout is Azure's default for NAT gateways, in minutes.
const defaultIdleTimeout = 4

type azureInfrastructure struct {
	metav1.TypeMeta `json:",inline"`

	Networks azureNetworks `json:"networks"`
	Zoned    bool          `json:"zoned,omitempty"`
}

// azureNetworks has either one range for the workers of all zones or zones with a range each.
type azureNetworks struct {
	VNet       network          `json:"vnet"`
	Workers    string           `json:"workers,omitempty"`
	NATGateway *azureNATGateway `json:"natGateway,omitempty"`
	Zones      []azureZone      `json:"zones,omitempty"`
}

type azureZone struct {
	Name       int              `json:"name"`
	CIDR       string           `json:"cidr"`
	NATGateway *azureNATGateway `json:"natGateway,omitempty"`
}

type azureNATGateway struct {
	Enabled                      bool `json:"enabled"`
	IdleConnectionTimeoutMinutes int  `json:"idleConnectionTimeoutMinutes"`
}

// azureCloud returns the part for Azure. Machines without a zone have no NAT gateway: Azure does not support it.
func azureCloud(config *spec.Azure, workers string) *cloud {
	names := slices.Clone(config.Zones)
	networks := azureNetworks{VNet: network{CIDR: config.VnetCIDR}}

	if len(config.AzureZones) == 0 {
		networks.Workers = workers

		if len(config.Zones) > 0 {
			networks.NATGateway = natGateway(config)
		}
	}

	for _, zone := range config.AzureZones {
		names = append(names, strconv.Itoa(zone.Name))
		networks.Zones = append(networks.Zones, azureZone{Name: zone.Name, CIDR: zone.CIDR, NATGateway: natGateway(config)})
	}

	return &cloud{
		profile: "az", nodes: config.VnetCIDR, zones: names,
		infrastructure: azureInfrastructure{
			TypeMeta: typeMeta(groupAzure, "InfrastructureConfig"), Networks: networks, Zoned: len(names) > 0,
		},
		controlPlane: typeMeta(groupAzure, "ControlPlaneConfig"),
	}
}

// natGateway returns the ordered NAT gateway, or nil. Its absence removes an existing one; see gatewayField.
func natGateway(config *spec.Azure) *azureNATGateway {
	if !valueOr(config.EnableNATGateway, false) {
		return nil
	}

	return &azureNATGateway{
		Enabled:                      true,
		IdleConnectionTimeoutMinutes: valueOr(config.IdleConnectionTimeoutMinutes, defaultIdleTimeout),
	}
}
