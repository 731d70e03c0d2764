package catalog

import (
	"github.com/Masterminds/semver/v3"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// Upgrade returns the cluster as maintenance to the plan's present version makes it: with the Kubernetes version of new clusters, unless
// it has a later one.
func (p *Plan) Upgrade(cluster environment.Cluster) environment.Cluster {
	if cluster.Own != nil {
		return cluster // its owner's
	}

	present, err := semver.NewVersion(cluster.KubernetesVersion)
	offered, offeredErr := semver.NewVersion(p.kubernetesVersion)

	if err == nil && offeredErr == nil && present.LessThan(offered) {
		cluster.KubernetesVersion = p.kubernetesVersion
	}

	return cluster
}
