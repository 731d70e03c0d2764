package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// Order is what is known of a new instance besides its plan.
type Order struct {
	InstanceID string
	// InstanceName is the platform's name of the instance, or empty.
	InstanceName   string
	PlatformRegion string
	// User orders the instance, and administers it unless the parameters name others.
	User       string
	Parameters json.RawMessage
}

// Resolved is what an order comes to.
type Resolved struct {
	Provider string
	Region   string
	Name     string
	Cluster  environment.Cluster
}

// Resolve checks the parameters of an order and fills in what it leaves open. The same order always comes to the same. The error
// is of kind invalid and names everything that is wrong.
func (p *Plan) Resolve(order Order) (Resolved, error) {
	given, wrong := p.create.read(order.Parameters)
	if len(wrong) > 0 {
		return Resolved{}, wrong.err()
	}

	offer := p.offerOf(given.Provider)
	provider := p.providers[offer.Provider]
	region := p.regionOf(offer, given.Region, order.PlatformRegion)
	available := provider.zones(region)

	cluster := environment.Cluster{
		KubernetesVersion: p.kubernetesVersion,
		MachineType:       offer.Machines[0],
		VolumeType:        provider.VolumeType,
		VolumeSizeGB:      p.Volume.Size,
		AutoScalerMin:     p.Nodes.Min,
		AutoScalerMax:     p.Nodes.Max,
		Zones:             choose(available, p.ZonesCount, order.InstanceID),
		NodesCIDR:         provider.Networking.Nodes,
		PodsCIDR:          provider.Networking.Pods,
		ServicesCIDR:      provider.Networking.Services,
		Purpose:           p.Purpose,
		LicenceType:       p.LicenceType,
		SharedCredentials: p.SharedCredentials,
		Administrators:    administrators(order.User),
	}

	given.apply(&cluster)

	if given.MaxSurge == nil {
		cluster.MaxSurge = len(cluster.Zones)
	}

	p.rules(&wrong, cluster, region, available)

	if err := wrong.err(); err != nil {
		return Resolved{}, err
	}

	return Resolved{
		Provider: offer.Provider,
		Region:   region,
		Name:     nameOf(given.Name, order),
		Cluster:  cluster,
	}, nil
}

// regionOf returns the provider's region: the one that the order names, else the default. Where regions are areas, the platform's
// region counts before the default.
func (p *Plan) regionOf(offer offer, given, platformRegion string) string {
	if !p.byArea() {
		return orElse(given, offer.DefaultRegion)
	}

	area := orElse(given, orElse(p.Areas.PlatformRegions[platformRegion], p.Areas.Default))

	return offer.Areas[area]
}

// zones lists the full names of a region's zones.
func (p providerFile) zones(region string) []string {
	var names []string
	for _, zone := range p.Regions[region].Zones {
		names = append(names, strings.NewReplacer("{region}", region, "{zone}", zone).Replace(p.ZoneFormat))
	}

	return names
}

// choose picks so many zones, the same for the same instance and others for others, in their order.
func choose(available []string, count int, instanceID string) []string {
	if count >= len(available) {
		return available
	}

	weight := func(zone string) string {
		sum := sha256.Sum256([]byte(instanceID + " " + zone))

		return string(sum[:])
	}

	chosen := slices.Clone(available)
	slices.SortFunc(chosen, func(a, b string) int { return strings.Compare(weight(a), weight(b)) })
	chosen = chosen[:count]
	slices.Sort(chosen)

	return chosen
}

// nameOf returns the runtime's name: what the order says, else the platform's name of the instance, else the first part of its id,
// the last two reduced to the characters that a name may have.
func nameOf(given string, order Order) string {
	if given != "" {
		return given
	}

	first, _, _ := strings.Cut(order.InstanceID, "-")

	for _, candidate := range []string{order.InstanceName, first} {
		name := strings.Trim(regexp.MustCompile(`[^a-zA-Z0-9-]+`).ReplaceAllString(candidate, "-"), "-")
		if len(name) > longestName {
			name = strings.TrimRight(name[:longestName], "-")
		}

		if name != "" {
			return name
		}
	}

	return "runtime"
}

// administrators is the user, if there is one.
func administrators(user string) []string {
	if user == "" {
		return []string{}
	}

	return []string{user}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}

	return text
}
