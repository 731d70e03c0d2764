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
	resolved, wrong := p.Check(order)

	return resolved, violations(wrong).err()
}

// Check is Resolve with a list of what is wrong in place of an error. What the order comes to counts only when nothing is.
func (p *Plan) Check(order Order) (Resolved, []Violation) {
	given, wrong := p.create.read(order.Parameters)
	if len(wrong) > 0 {
		return Resolved{}, wrong
	}

	resolved := Resolved{Name: nameOf(given.Name, order)}

	if p.OwnCluster {
		resolved.Cluster.Own = given.applyOwn(nil, &wrong)

		return resolved, wrong
	}

	place := p.placeOf(given, order.PlatformRegion, &wrong)
	if len(wrong) > 0 {
		return Resolved{}, wrong
	}

	resolved.Provider, resolved.Region = place.offer.Provider, place.region
	resolved.Cluster = p.standard(place, order)
	given.apply(&resolved.Cluster)

	available := place.provider.zones(place.region, resolved.Cluster.MachineType)

	if len(given.Zones) == 0 {
		resolved.Cluster.Zones = choose(available, p.ZonesCount, order.InstanceID)
	}

	if given.MaxSurge == nil {
		resolved.Cluster.MaxSurge = len(resolved.Cluster.Zones)
	}

	p.rules(&wrong, resolved.Cluster)
	place.provider.rules(&wrong, resolved.Cluster, place.region)
	checkNetworks(&wrong, resolved.Cluster, p.reserved)

	return resolved, wrong
}

// standard is the cluster of an order that names nothing but the place.
func (p *Plan) standard(place place, order Order) environment.Cluster {
	return environment.Cluster{
		KubernetesVersion: p.kubernetesVersion,
		MachineType:       place.offer.Machines[0],
		VolumeType:        place.provider.VolumeType,
		VolumeSizeGB:      p.Volume.Size,
		AutoScalerMin:     p.Nodes.Min,
		AutoScalerMax:     p.Nodes.Max,
		NodesCIDR:         place.provider.Networking.Nodes,
		PodsCIDR:          place.provider.Networking.Pods,
		ServicesCIDR:      place.provider.Networking.Services,
		Purpose:           p.Purpose,
		LicenceType:       p.LicenceType,
		SharedCredentials: p.SharedCredentials,
		Administrators:    administrators(order.User),
		EUAccess:          place.euAccess,
		OpenStack:         place.provider.OpenStack,
		OIDC:              p.oidc,
	}
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
