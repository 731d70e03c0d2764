package catalog

import (
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// rules finds what a schema cannot tell, on the values that are in effect. Without the zones that there are, those of the cluster are
// not looked at.
func (p *Plan) rules(wrong *violations, cluster environment.Cluster, region string, available []string) {
	wrong.unless(cluster.AutoScalerMin <= cluster.AutoScalerMax, paramAutoScalerMin, ruleRange,
		"%d is greater than autoScalerMax %d", cluster.AutoScalerMin, cluster.AutoScalerMax)
	wrong.unless(cluster.AutoScalerMax >= len(cluster.Zones), paramAutoScalerMax, ruleZones,
		"%d is less than the number of zones %d", cluster.AutoScalerMax, len(cluster.Zones))
	wrong.unless(cluster.MaxSurge > 0 || cluster.MaxUnavailable > 0, paramMaxSurge, ruleReplacement,
		"it is 0 and so is maxUnavailable: no node could ever be replaced")

	for _, zone := range cluster.Zones {
		wrong.unless(available == nil || slices.Contains(available, zone), paramZones, ruleZones,
			"zone %q is not in %s, which has %s", zone, region, strings.Join(available, ", "))
	}

	checkOIDC(wrong, cluster.OIDC)
}
