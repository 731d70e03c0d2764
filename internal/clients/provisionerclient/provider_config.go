package provisionerclient

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient/wire"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	// zoneBits is the number of additional prefix bits that divide the nodes' range into eighths. Each zone gets one eighth for
	// its workers and one for its other addresses.
	zoneBits = 3
	// maxZones is the maximum number of zones, because each zone needs two of the eighths.
	maxZones = 4
	ipv4Bits = 32
)

// providerConfig returns the part of an order that depends on the provider. A new provider needs a case here.
// The error is failure.Invalid if the user requested too many zones. Any other error is failure.Internal,
// because the catalog should have rejected the order.
func providerConfig(provider string, cluster environment.Cluster) (*wire.ProviderSpecificInput, error) {
	switch provider {
	case "aws":
		zones, err := awsZones(cluster)
		if err != nil {
			return nil, err
		}

		return &wire.ProviderSpecificInput{
			AwsConfig: &wire.AWSProviderConfigInput{VpcCidr: cluster.NodesCIDR, AwsZones: zones},
		}, nil
	case "azure":
		zones, err := azureZones(cluster)
		if err != nil {
			return nil, err
		}

		return &wire.ProviderSpecificInput{
			AzureConfig: &wire.AzureProviderConfigInput{VnetCidr: cluster.NodesCIDR, AzureZones: zones},
		}, nil
	case "gcp":
		return &wire.ProviderSpecificInput{GcpConfig: &wire.GCPProviderConfigInput{Zones: cluster.Zones}}, nil
	case "openstack":
		settings := cluster.OpenStack
		if settings == nil {
			return nil, failure.New(failure.Internal, "the cluster has no OpenStack settings")
		}

		return &wire.ProviderSpecificInput{OpenStackConfig: &wire.OpenStackProviderConfigInput{
			Zones: cluster.Zones, FloatingPoolName: &settings.FloatingPoolName, CloudProfileName: &settings.CloudProfileName,
			LoadBalancerProvider: settings.LoadBalancerProvider,
		}}, nil
	default:
		return nil, failure.New(failure.Internal, "provider %q is not supported", provider)
	}
}

// awsZones returns the zones with their address ranges. AWS requires separate subnets for workers, public load balancers and
// internal load balancers.
func awsZones(cluster environment.Cluster) ([]*wire.AWSZoneInput, error) {
	ranges, err := splitNodes(cluster.NodesCIDR, len(cluster.Zones))
	if err != nil {
		return nil, err
	}

	zones := make([]*wire.AWSZoneInput, 0, len(cluster.Zones))
	for i, name := range cluster.Zones {
		zones = append(zones, &wire.AWSZoneInput{
			Name: name, WorkerCidr: ranges[i].workers, PublicCidr: ranges[i].public, InternalCidr: ranges[i].internal,
		})
	}

	return zones, nil
}

// azureZones returns the zones with the address ranges of their workers. The names of Azure zones are numbers.
func azureZones(cluster environment.Cluster) ([]*wire.AzureZoneInput, error) {
	ranges, err := splitNodes(cluster.NodesCIDR, len(cluster.Zones))
	if err != nil {
		return nil, err
	}

	zones := make([]*wire.AzureZoneInput, 0, len(cluster.Zones))

	for i, name := range cluster.Zones {
		number, err := strconv.Atoi(name)
		if err != nil {
			return nil, failure.Wrap(failure.Internal, err, "Azure zone %q is not a number", name)
		}

		zones = append(zones, &wire.AzureZoneInput{Name: number, Cidr: ranges[i].workers})
	}

	return zones, nil
}

// zoneRanges contains the parts of the nodes' range that belong to one zone, in CIDR notation.
type zoneRanges struct {
	workers, public, internal string
}

// splitNodes divides the nodes' range among the zones. Each zone gets one eighth for its workers; the next
// eighth is split in half for its public and its internal addresses. For example, the first zone of
// 10.250.0.0/16 gets 10.250.0.0/19, 10.250.32.0/20 and 10.250.48.0/20.
func splitNodes(nodes string, zones int) ([]zoneRanges, error) {
	prefix, err := netip.ParsePrefix(nodes)
	if err != nil || !prefix.Addr().Is4() || prefix.Bits() > ipv4Bits-zoneBits-1 {
		return nil, failure.New(failure.Internal, "the nodes' range %q cannot be divided among zones", nodes)
	}

	if zones > maxZones {
		return nil, failure.New(failure.Invalid, "the order has %d zones, but at most %d are possible", zones, maxZones)
	}

	base := binary.BigEndian.Uint32(prefix.Masked().Addr().AsSlice())
	eighth := uint32(1) << (ipv4Bits - prefix.Bits() - zoneBits)
	ranges := make([]zoneRanges, 0, zones)

	for i := range uint32(zones) { //nolint:gosec // at most maxZones
		workers := base + i*2*eighth
		others := workers + eighth

		ranges = append(ranges, zoneRanges{
			workers:  cidr(workers, prefix.Bits()+zoneBits),
			public:   cidr(others, prefix.Bits()+zoneBits+1),
			internal: cidr(others+eighth/2, prefix.Bits()+zoneBits+1),
		})
	}

	return ranges, nil
}

// cidr formats an IPv4 network.
func cidr(address uint32, bits int) string {
	var octets [4]byte

	binary.BigEndian.PutUint32(octets[:], address)

	return fmt.Sprintf("%s/%d", netip.AddrFrom4(octets), bits)
}
