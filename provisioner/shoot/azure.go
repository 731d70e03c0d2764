package shoot

import (
	"slices"
	"strconv"

	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// groupAzure is the API group of Gardener's extension for Azure, without the suffix .extensions.gardener.cloud.
const groupAzure = "azure.provider"

// defaultIdleTimeout is the time after which a NAT gateway drops idle connections, in minutes. It is Azure's default.
const defaultIdleTimeout = 4

// azureCloud returns the Azure-specific part of a Shoot. The order has either one network for the machines of all zones, or a
// network for each zone. Machines without a zone have no NAT gateway, because Azure does not support this combination.
func azureCloud(config *spec.Azure, workers string) *cloud {
	names := slices.Clone(config.Zones)
	networks := fields{"vnet": fields{"cidr": config.VnetCIDR}}

	var zones []fields

	for _, zone := range config.AzureZones {
		names = append(names, strconv.Itoa(zone.Name))
		zones = append(zones, withNATGateway(config, fields{"name": zone.Name, "cidr": zone.CIDR}))
	}

	if zones != nil {
		networks["zones"] = zones
	} else {
		networks["workers"] = workers

		if len(config.Zones) > 0 {
			withNATGateway(config, networks)
		}
	}

	infrastructure := fields{"networks": networks}
	if len(names) > 0 {
		infrastructure["zoned"] = true
	}

	return &cloud{
		profile: "az", nodes: config.VnetCIDR, zones: names,
		infrastructure: extensionConfig(groupAzure, "InfrastructureConfig", infrastructure),
		controlPlane:   extensionConfig(groupAzure, "ControlPlaneConfig", nil),
	}
}

// withNATGateway returns the network with the ordered NAT gateway. If no gateway is ordered, the field is absent, which removes
// an existing gateway; see gatewayField.
func withNATGateway(config *spec.Azure, network fields) fields {
	if ptr.Deref(config.EnableNATGateway, false) {
		network[gatewayField] = fields{
			"enabled": true, "idleConnectionTimeoutMinutes": ptr.Deref(config.IdleConnectionTimeoutMinutes, defaultIdleTimeout),
		}
	}

	return network
}
