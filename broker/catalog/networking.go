package catalog

import (
	"net/netip"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// maxNodesPrefix is the longest allowed prefix of the nodes' range. Each zone gets one eighth of the range for its worker nodes;
// a longer prefix would leave fewer than 64 addresses for each zone.
const maxNodesPrefix = 23

// networking contains the address ranges of an order, or the defaults of a provider.
type networking struct {
	Nodes    string `json:"nodes"`
	Pods     string `json:"pods"`
	Services string `json:"services"`
}

// checkNetworks checks that the ranges are valid and overlap neither each other nor reserved ranges. Ranges cannot be changed
// later: a tenant who chooses a wrong range would need a new cluster.
func checkNetworks(violations *Violations, cluster environment.Cluster, reserved []string) {
	type network struct {
		name   string
		prefix netip.Prefix
	}

	var usable []network

	for _, one := range []struct{ field, text string }{
		{"networking.nodes", cluster.NodesCIDR}, {"networking.pods", cluster.PodsCIDR}, {"networking.services", cluster.ServicesCIDR},
	} {
		prefix, err := netip.ParsePrefix(one.text)
		ok := err == nil && prefix.Addr().Is4() && prefix == prefix.Masked()
		violations.require(ok, one.field, ruleNetwork, "%q must be an IPv4 network such as 10.250.0.0/16, and all bits after the prefix must be zero", one.text)

		if ok {
			usable = append(usable, network{one.field, prefix})
		}
	}

	for i, one := range usable {
		violations.require(one.name != "networking.nodes" || one.prefix.Bits() <= maxNodesPrefix, one.name, ruleNetwork,
			"the prefix /%d leaves too few addresses; the longest allowed prefix is /%d", one.prefix.Bits(), maxNodesPrefix)

		for _, other := range usable[:i] {
			violations.require(!one.prefix.Overlaps(other.prefix), one.name, ruleOverlap,
				"%s overlaps %s %s", one.prefix, other.name, other.prefix)
		}

		for _, text := range reserved {
			other, err := netip.ParsePrefix(text)
			violations.require(err != nil || !one.prefix.Overlaps(other), one.name, ruleOverlap,
				"%s overlaps %s, which control planes use", one.prefix, text)
		}
	}
}
