package catalog

import (
	"encoding/json"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// Change is what is known of an instance that is to be updated.
type Change struct {
	// Region is the provider's. Without it, nobody looks whether the machine type is to be had there.
	Region string
	// Current is the cluster as it is.
	Current environment.Cluster
	// Parameters are those of the update.
	Parameters json.RawMessage
}

// Update returns the cluster that an update makes of the current one: what the update names, and the rest as it is, within the
// bounds of the plan. When the plan changes, it is the new one that is asked. The error is of kind invalid and names everything that is
// wrong.
func (p *Plan) Update(change Change) (environment.Cluster, error) {
	given, wrong := p.update.read(change.Parameters)
	if len(wrong) > 0 {
		return environment.Cluster{}, wrong.err()
	}

	cluster := change.Current

	if p.OwnCluster {
		cluster.Own = given.applyOwn(cluster.Own, &wrong)

		return cluster, wrong.err()
	}

	cluster.LicenceType, cluster.SharedCredentials = p.LicenceType, p.SharedCredentials
	p.bound(&cluster)
	given.apply(&cluster)

	p.rules(&wrong, cluster)

	if given.MachineType != "" && change.Region != "" {
		p.providers[p.Offers[0].Provider].rules(&wrong, cluster, change.Region)
	}

	if err := wrong.err(); err != nil {
		return environment.Cluster{}, err
	}

	return cluster, nil
}

// bound brings the numbers of nodes within the plan's bounds: another plan may have made the cluster, or the same one before its
// bounds were changed.
func (p *Plan) bound(cluster *environment.Cluster) {
	if p.Nodes.Highest == 0 {
		cluster.AutoScalerMin, cluster.AutoScalerMax = p.Nodes.Min, p.Nodes.Max

		return
	}

	cluster.AutoScalerMin = min(max(cluster.AutoScalerMin, p.Nodes.Lowest), p.Nodes.Highest)
	cluster.AutoScalerMax = min(max(cluster.AutoScalerMax, p.Nodes.Lowest), p.Nodes.Highest)
}

// MayBecome reports whether an instance of the plan may be changed to the other one.
func (p *Plan) MayBecome(target *Plan) bool {
	return p.ID == target.ID || contains(p.BecomesPlans, target.Name)
}
