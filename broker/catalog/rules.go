package catalog

import (
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// rules finds what a schema cannot tell, on the values that are in effect.
func (p *Plan) rules(wrong *violations, cluster environment.Cluster) {
	wrong.unless(cluster.AutoScalerMin <= cluster.AutoScalerMax, paramAutoScalerMin, ruleRange,
		"%d is greater than autoScalerMax %d", cluster.AutoScalerMin, cluster.AutoScalerMax)
	wrong.unless(cluster.AutoScalerMax >= len(cluster.Zones), paramAutoScalerMax, ruleZones,
		"%d is less than the number of zones %d", cluster.AutoScalerMax, len(cluster.Zones))
	wrong.unless(cluster.MaxSurge > 0 || cluster.MaxUnavailable > 0, paramMaxSurge, ruleReplacement,
		"it is 0 and so is maxUnavailable: no node could ever be replaced")

	checkOIDC(wrong, cluster.OIDC)
}

// rules finds zones and machine types that the provider does not have in the region.
func (p providerFile) rules(wrong *violations, cluster environment.Cluster, region string) {
	available := p.zones(region, cluster.MachineType)
	if len(available) == 0 {
		wrong.unless(false, paramMachineType, ruleOffer, "%s is not to be had in %s, but in %s",
			cluster.MachineType, region, strings.Join(p.has(cluster.MachineType), ", "))

		return
	}

	for _, zone := range cluster.Zones {
		wrong.unless(slices.Contains(available, zone), paramZones, ruleZones, "zone %q is not one of %s that has %s; these are %s",
			zone, region, cluster.MachineType, strings.Join(available, ", "))
	}
}
