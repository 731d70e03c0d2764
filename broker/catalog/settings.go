package catalog

import (
	"slices"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// apply puts what a request says into the cluster. What it is silent about stays.
func (given parameters) apply(cluster *environment.Cluster) {
	set(&cluster.MachineType, &given.MachineType)
	setTo(&cluster.VolumeSizeGB, given.VolumeSizeGB)
	setTo(&cluster.AutoScalerMin, given.AutoScalerMin)
	setTo(&cluster.AutoScalerMax, given.AutoScalerMax)
	setTo(&cluster.MaxSurge, given.MaxSurge)
	setTo(&cluster.MaxUnavailable, given.MaxUnavailable)
	set(&cluster.Purpose, &given.Purpose)

	set(&cluster.NodesCIDR, &given.Networking.Nodes)
	set(&cluster.PodsCIDR, &given.Networking.Pods)
	set(&cluster.ServicesCIDR, &given.Networking.Services)

	if len(given.Zones) > 0 {
		cluster.Zones = given.Zones
	}

	if len(given.Administrators) > 0 {
		cluster.Administrators = slices.Clone(given.Administrators)
	}

	cluster.OIDC = given.OIDC.over(cluster.OIDC)
}

// set changes a text, unless there is none.
func set(text, given *string) {
	if *given != "" {
		*text = *given
	}
}

// setTo changes a number, unless there is none.
func setTo(number, given *int) {
	if given != nil {
		*number = *given
	}
}
