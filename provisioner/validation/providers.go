package validation

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// The providers, by their names in orders.
const (
	aws       = "aws"
	azure     = "azure"
	gcp       = "gcp"
	openstack = "openstack"
)

// The limits of Azure's NAT gateways, in minutes.
const (
	minIdleTimeout = 4
	maxIdleTimeout = 120
)

// provider validates the provider, its part of the order, and the networks, which depend on the provider. It returns the names of
// the zones.
func (p *problems) provider(config *spec.Cluster) []string {
	workers := p.parse("workerCidr", config.WorkerCIDR)
	pods := p.parseOptional("podsCidr", config.PodsCIDR)
	services := p.parseOptional("servicesCidr", config.ServicesCIDR)

	if !slices.Contains([]string{aws, azure, gcp, openstack}, config.Provider) {
		p.add("provider", "must be one of aws, azure, gcp, openstack, not %q", config.Provider)

		return nil
	}

	parts := config.ProviderSpecificConfig
	if !slices.Equal(givenParts(parts), []string{config.Provider}) {
		p.add("providerSpecificConfig", "must have the part for provider %s and no other", config.Provider)

		return nil
	}

	nodes, zones := workers, []string(nil)

	switch config.Provider {
	case aws:
		nodes, zones = p.aws(parts.AWSConfig, workers)
	case azure:
		nodes, zones = p.azure(parts.AzureConfig, workers)
	case gcp:
		zones = p.zones("gcpConfig.zones", parts.GCPConfig.Zones)
	case openstack:
		zones = p.zones("openStackConfig.zones", parts.OpenStackConfig.Zones)
	}

	p.disjoint(nodes, pods, services)

	p.enoughMachines("", config.AutoScalerMax, len(zones))

	return zones
}

// givenParts returns the providers for which the order has a part.
func givenParts(parts *spec.Provider) []string {
	var providers []string

	if parts == nil {
		return nil
	}

	if parts.AWSConfig != nil {
		providers = append(providers, aws)
	}

	if parts.AzureConfig != nil {
		providers = append(providers, azure)
	}

	if parts.GCPConfig != nil {
		providers = append(providers, gcp)
	}

	if parts.OpenStackConfig != nil {
		providers = append(providers, openstack)
	}

	return providers
}

// zones validates zones that share one network, and returns them.
func (p *problems) zones(field string, names []string) []string {
	if len(names) == 0 {
		p.add(field, "must not be empty")
	}

	p.unique(field, names)

	return names
}

// aws validates the part for AWS. It returns the network of all nodes, and the zones.
func (p *problems) aws(config *spec.AWS, workers addresses) (addresses, []string) {
	const field = "awsConfig.awsZones"

	network := p.parse("awsConfig.vpcCidr", config.VpcCIDR)
	p.inside(network, workers)

	if len(config.AWSZones) == 0 {
		p.add(field, "must not be empty")
	}

	var (
		names   []string
		subnets []addresses
	)

	for i, zone := range config.AWSZones {
		at := fmt.Sprintf("%s[%d]", field, i)
		if zone == nil {
			p.add(at, "must not be null")

			continue
		}

		names = append(names, zone.Name)
		subnets = append(subnets,
			p.parse(at+".workerCidr", zone.WorkerCIDR),
			p.parse(at+".publicCidr", zone.PublicCIDR),
			p.parse(at+".internalCidr", zone.InternalCIDR))
	}

	p.unique(field, names)
	p.inside(network, subnets...)
	p.disjoint(subnets...)

	return network, names
}

// azure validates the part for Azure. It returns the network of all nodes, and the zones.
func (p *problems) azure(config *spec.Azure, workers addresses) (addresses, []string) {
	const field = "azureConfig.azureZones"

	network := p.parse("azureConfig.vnetCidr", config.VnetCIDR)
	p.inside(network, workers)

	p.idleTimeout(config.IdleConnectionTimeoutMinutes)

	if len(config.Zones) > 0 && len(config.AzureZones) > 0 {
		p.add(field, "and azureConfig.zones exclude each other")
	}

	p.unique("azureConfig.zones", config.Zones)

	var (
		names   []string
		subnets []addresses
	)

	for i, zone := range config.AzureZones {
		if zone.Name < 1 {
			p.add(fmt.Sprintf("%s[%d].name", field, i), "must be at least 1")
		}

		names = append(names, strconv.Itoa(zone.Name))
		subnets = append(subnets, p.parse(fmt.Sprintf("%s[%d].cidr", field, i), zone.CIDR))
	}

	p.unique(field, names)
	p.inside(network, subnets...)
	p.disjoint(subnets...)

	return network, slices.Concat(config.Zones, names)
}

// idleTimeout validates the timeout of NAT gateways on Azure. Nil means Azure's default.
func (p *problems) idleTimeout(minutes *int) {
	if minutes != nil && (*minutes < minIdleTimeout || *minutes > maxIdleTimeout) {
		p.add("azureConfig.idleConnectionTimeoutMinutes", "must be between %d and %d", minIdleTimeout, maxIdleTimeout)
	}
}
