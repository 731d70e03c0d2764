package catalog

import (
	"net/netip"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// smallestNodes is the longest prefix of the nodes' range: each zone gets an eighth of it, half of which is for addresses of its own.
const smallestNodes = 23

// networking is what an order says of its ranges of addresses.
type networking struct {
	Nodes    string `json:"nodes"`
	Pods     string `json:"pods"`
	Services string `json:"services"`
}

func networkingSchema(p *Plan) map[string]any {
	standard := p.providers[p.Offers[0].Provider].Networking
	network := func(description, standard string) map[string]any {
		return property("string", description, map[string]any{"default": standard})
	}

	return property("object", "The ranges of addresses of the cluster, in CIDR notation. They cannot be changed later.", map[string]any{
		"properties": map[string]any{
			"nodes":    network("Addresses of worker nodes; the prefix is at most /23.", standard.Nodes),
			"pods":     network("Addresses of pods.", standard.Pods),
			"services": network("Addresses of services.", standard.Services),
		},
		"required": []string{"nodes"}, "additionalProperties": false, "_controlsOrder": []string{"nodes", "pods", "services"},
	})
}

// checkNetworks finds ranges that are none, and those that share addresses with each other or with what is reserved.
func checkNetworks(wrong *violations, cluster environment.Cluster, reserved []string) {
	type network struct {
		name   string
		prefix netip.Prefix
	}

	var usable []network

	for _, one := range []struct{ field, text string }{
		{"networking.nodes", cluster.NodesCIDR}, {"networking.pods", cluster.PodsCIDR}, {"networking.services", cluster.ServicesCIDR},
	} {
		prefix, err := netip.ParsePrefix(one.text)
		fine := err == nil && prefix.Addr().Is4() && prefix == prefix.Masked()
		wrong.unless(fine, one.field, ruleNetwork, "%q is not an IPv4 network such as 10.250.0.0/16, without a bit behind its prefix", one.text)

		if fine {
			usable = append(usable, network{one.field, prefix})
		}
	}

	for i, one := range usable {
		wrong.unless(one.name != "networking.nodes" || one.prefix.Bits() <= smallestNodes, one.name, ruleNetwork,
			"the prefix /%d is longer than /%d: there would be too few addresses", one.prefix.Bits(), smallestNodes)

		for _, other := range usable[:i] {
			wrong.unless(!one.prefix.Overlaps(other.prefix), one.name, ruleOverlap,
				"%s shares addresses with %s %s", one.prefix, other.name, other.prefix)
		}

		for _, text := range reserved {
			other, err := netip.ParsePrefix(text)
			wrong.unless(err != nil || !one.prefix.Overlaps(other), one.name, ruleOverlap,
				"%s shares addresses with %s, which control planes use", one.prefix, text)
		}
	}
}
