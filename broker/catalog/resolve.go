package catalog

import (
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// Resolve completes an instance: it sets Name, Provider, Region, DeletionProtection and Request.Cluster. It reads only ID, Name
// (the platform's name for the instance), PlatformRegion, Request.User and Request.Parameters. If there are violations, it
// returns the instance unchanged.
func (p *Plan) Resolve(instance environment.Instance) (environment.Instance, Violations) {
	given, violations := p.create.read(instance.Request.Parameters)
	if len(violations) > 0 {
		return instance, violations
	}

	resolved := instance
	resolved.Name = runtimeName(given.Name, instance)

	resolved.DeletionProtection = p.DeletionProtection
	setTo(&resolved.DeletionProtection, given.DeletionProtection)

	if p.OwnCluster {
		resolved.Request.Cluster = environment.Cluster{Own: given.applyOwn(nil, &violations)}
	} else {
		p.resolveCluster(&resolved, given, &violations)
	}

	if len(violations) > 0 {
		return instance, violations
	}

	return resolved, nil
}

// resolveCluster sets the location and the cluster of the instance. It applies the defaults, then the parameters, then the values
// that depend on both: the zones depend on the machine type, and the surge depends on the number of zones.
func (p *Plan) resolveCluster(instance *environment.Instance, given parameters, violations *Violations) {
	location := p.locate(given, instance.PlatformRegion, violations)
	if len(*violations) > 0 {
		return
	}

	cluster := p.defaultCluster(location, instance.Request.User)
	given.apply(&cluster)

	if len(given.Zones) == 0 {
		cluster.Zones = chooseZones(location.provider.zones(location.region, cluster.MachineType), p.ZonesCount, instance.ID)
	}

	if given.MaxSurge == nil {
		cluster.MaxSurge = len(cluster.Zones)
	}

	cluster.Kyma = p.orderedKyma(given, violations)

	p.checkCluster(violations, cluster)
	location.provider.checkZones(violations, cluster, location.region)
	checkNetworks(violations, cluster, p.reserved)

	instance.Provider, instance.Region, instance.Request.Cluster = location.offer.Provider, location.region, cluster
}

// defaultCluster returns the cluster of an order without parameters.
func (p *Plan) defaultCluster(location location, user string) environment.Cluster {
	return environment.Cluster{
		KubernetesVersion: p.kubernetesVersion,
		MachineType:       location.offer.Machines[0],
		VolumeType:        location.provider.VolumeType,
		VolumeSizeGB:      p.Volume.Size,
		AutoScalerMin:     p.Nodes.Min,
		AutoScalerMax:     p.Nodes.Max,
		NodesCIDR:         location.provider.Networking.Nodes,
		PodsCIDR:          location.provider.Networking.Pods,
		ServicesCIDR:      location.provider.Networking.Services,
		Purpose:           p.Purpose,
		LicenceType:       p.LicenceType,
		SharedCredentials: p.SharedCredentials,
		Administrators:    administrators(user),
		EUAccess:          location.euAccess,
		OpenStack:         location.provider.OpenStack,
		OIDC:              p.oidc,
	}
}

// chooseZones picks zones by a hash of the instance ID. This spreads instances over all zones, and a repeated order
// gets the same zones.
func chooseZones(available []string, count int, instanceID string) []string {
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

// runtimeName returns the name of the runtime: the name parameter, or else the platform's name for the instance, or else the
// first part of the instance ID, or else "runtime". In the platform's name and the ID, characters that are not allowed are
// replaced with hyphens.
func runtimeName(given string, instance environment.Instance) string {
	if given != "" {
		return given
	}

	first, _, _ := strings.Cut(instance.ID, "-")

	for _, candidate := range []string{instance.Name, first} {
		name := strings.Trim(regexp.MustCompile(`[^a-zA-Z0-9-]+`).ReplaceAllString(candidate, "-"), "-")
		if len(name) > maxName {
			name = strings.TrimRight(name[:maxName], "-")
		}

		if name != "" {
			return name
		}
	}

	return "runtime"
}

// administrators returns the default administrators: the user who orders the cluster, or none if the platform does
// not send a user.
func administrators(user string) []string {
	if user == "" {
		return []string{}
	}

	return []string{user}
}

// checkCluster checks rules that a JSON schema cannot express. The rules compare several parameters, so they are
// checked after the defaults have been applied.
func (p *Plan) checkCluster(violations *Violations, cluster environment.Cluster) {
	violations.require(cluster.AutoScalerMin <= cluster.AutoScalerMax, paramAutoScalerMin, ruleRange,
		"%d is greater than autoScalerMax %d", cluster.AutoScalerMin, cluster.AutoScalerMax)
	violations.require(cluster.AutoScalerMax >= len(cluster.Zones), paramAutoScalerMax, ruleZones,
		"%d is less than the number of zones (%d)", cluster.AutoScalerMax, len(cluster.Zones))
	violations.require(cluster.MaxSurge > 0 || cluster.MaxUnavailable > 0, paramMaxSurge, ruleReplacement,
		"both maxSurge and maxUnavailable are 0: no node could ever be replaced")

	checkOIDC(violations, cluster.OIDC)
}

// checkZones checks that the zones and the machine type are available in the region.
func (p providerFile) checkZones(violations *Violations, cluster environment.Cluster, region string) {
	available := p.zones(region, cluster.MachineType)
	if len(available) == 0 {
		violations.require(false, paramMachineType, ruleOffer, "%s is not available in %s, only in %s",
			cluster.MachineType, region, strings.Join(p.regionsWith(cluster.MachineType), ", "))

		return
	}

	for _, zone := range cluster.Zones {
		violations.require(slices.Contains(available, zone), paramZones, ruleZones, "zone %q is not available for %s in %s; the available zones are %s",
			zone, cluster.MachineType, region, strings.Join(available, ", "))
	}
}
