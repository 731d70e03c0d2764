package validation

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// The names of the providers, in orders and in Gardener's cloud profiles.
const (
	aws       = "aws"
	azure     = "azure"
	gcp       = "gcp"
	openstack = "openstack"
)

// Azure's limits for the idle timeout of a NAT gateway, in minutes.
const (
	minIdleTimeout = 4
	maxIdleTimeout = 120
)

// provider validates the provider's name, the fields that are specific to the provider, and the address ranges. It returns the
// names of the zones, or nil if the provider is invalid.
func (p *problems) provider(config *spec.Cluster) []string {
	nodes := p.parse("workerCidr", config.WorkerCIDR)
	pods := p.parseOptional("podsCidr", config.PodsCIDR)
	services := p.parseOptional("servicesCidr", config.ServicesCIDR)

	if !slices.Contains([]string{aws, azure, gcp, openstack}, config.Provider) {
		p.add("provider", "must be one of aws, azure, gcp, openstack, not %q", config.Provider)

		return nil
	}

	parts := config.ProviderSpecificConfig
	if !p.onePart(parts, config.Provider) {
		return nil
	}

	var zones []string

	switch config.Provider {
	case aws:
		nodes, zones = p.aws(parts.AWSConfig, nodes)
	case azure:
		nodes, zones = p.azure(parts.AzureConfig, nodes)
	case gcp:
		zones = p.zones("gcpConfig.zones", parts.GCPConfig.Zones)
	case openstack:
		zones = p.zones("openStackConfig.zones", parts.OpenStackConfig.Zones)
	}

	p.disjoint(nodes, pods, services)

	p.enoughMachines("", config.AutoScalerMax, len(zones))

	return zones
}

// onePart requires that the order has a configuration for exactly the given provider. It returns false if that configuration is
// missing or if there is another one. Callers must not read the configuration before this check, because it may be nil.
func (p *problems) onePart(parts *spec.Provider, provider string) bool {
	wanted := [...]bool{provider == aws, provider == azure, provider == gcp, provider == openstack}
	if parts != nil && wanted == [...]bool{
		parts.AWSConfig != nil, parts.AzureConfig != nil, parts.GCPConfig != nil, parts.OpenStackConfig != nil,
	} {
		return true
	}

	p.add("providerSpecificConfig", "must contain the configuration for provider %s and no other", provider)

	return false
}

// zones validates and returns the zones of a provider that has one network for all zones.
func (p *problems) zones(field string, names []string) []string {
	p.addIf(len(names) == 0, field, "must not be empty")

	p.unique(field+"[%d]", names)

	return names
}

// aws validates the configuration for AWS: a VPC that contains the range of the nodes, and in each zone three disjoint subnets
// of the VPC. It returns the range of the VPC, which pods and services must not overlap, and the zones.
func (p *problems) aws(config *spec.AWS, workers addresses) (addresses, []string) {
	const field = "awsConfig.awsZones"

	network := p.parse("awsConfig.vpcCidr", config.VpcCIDR)
	p.inside(network, workers)

	p.addIf(len(config.AWSZones) == 0, field, "must not be empty")

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

	p.unique(field+"[%d]", names)
	p.inside(network, subnets...)
	p.disjoint(subnets...)

	return network, names
}

// azure validates the configuration for Azure: a virtual network that contains the range of the nodes, and either zones that
// share the range or zones with separate, disjoint ranges. It returns the range of the network, which pods and services must not
// overlap, and the zones.
func (p *problems) azure(config *spec.Azure, workers addresses) (addresses, []string) {
	const field = "azureConfig.azureZones"

	network := p.parse("azureConfig.vnetCidr", config.VnetCIDR)
	p.inside(network, workers)

	p.idleTimeout(config.IdleConnectionTimeoutMinutes)

	p.addIf(len(config.Zones) > 0 && len(config.AzureZones) > 0, field, "cannot be combined with azureConfig.zones")

	p.unique("azureConfig.zones[%d]", config.Zones)

	var (
		names   []string
		subnets []addresses
	)

	for i, zone := range config.AzureZones {
		p.addIf(zone.Name < 1, fmt.Sprintf("%s[%d].name", field, i), "must be at least 1")

		names = append(names, strconv.Itoa(zone.Name))
		subnets = append(subnets, p.parse(fmt.Sprintf("%s[%d].cidr", field, i), zone.CIDR))
	}

	p.unique(field+"[%d]", names)
	p.inside(network, subnets...)
	p.disjoint(subnets...)

	return network, slices.Concat(config.Zones, names)
}

// idleTimeout validates the idle timeout of the NAT gateway. Nil means Azure's default.
func (p *problems) idleTimeout(minutes *int) {
	p.addIf(minutes != nil && (*minutes < minIdleTimeout || *minutes > maxIdleTimeout),
		"azureConfig.idleConnectionTimeoutMinutes", "must be between %d and %d", minIdleTimeout, maxIdleTimeout)
}
