package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// Updated is the effect of an update's parameters on an instance.
type Updated struct {
	Cluster environment.Cluster
	// DeletionProtection is nil if the update does not change it.
	DeletionProtection *bool
	// UpgradeTime is when the instance's next upgrade with a deadline starts, or zero if the update does not choose a time.
	UpgradeTime time.Time
	// Parameters contains the parameters that replace stored ones: the sent ones without repeated create-only parameters and values that
	// count as absent, and the stored limits of the autoscaler that the bounds of the plan have changed. The value of oidc includes the
	// stored fields that the update omits.
	Parameters json.RawMessage
}

// Update returns the instance's cluster with the parameters of an update, within the bounds of the plan. To change the plan, call
// Update on the new plan. A new machine type must be available in instance.Region, unless instance.Region is empty.
//
// The update may repeat the current values of create-only parameters. The error is of kind invalid and lists the violations.
func (p *Plan) Update(instance environment.Instance, sent json.RawMessage) (Updated, error) {
	changes, violations := p.withoutRepeated(instance, sent)

	given, invalid := p.update.read(changes)
	if violations = append(violations, invalid...); len(violations) > 0 {
		return Updated{}, violations.Err()
	}

	cluster := instance.Request.Cluster

	if p.OwnCluster {
		cluster.Own = given.applyOwn(cluster.Own, &violations)

		return Updated{Cluster: cluster, DeletionProtection: given.DeletionProtection, Parameters: changes}, violations.Err()
	}

	cluster.LicenceType, cluster.SharedCredentials = p.LicenceType, p.SharedCredentials
	p.clampNodes(&cluster)
	given.apply(&cluster)
	p.changeModules(&cluster, given.Modules, &violations)

	p.checkCluster(&violations, cluster)

	upgradeTime := given.upgradeTime(&violations)

	if given.MachineType != "" && instance.Region != "" {
		p.providers[p.Offers[0].Provider].checkZones(&violations, cluster, instance.Region)
	}

	if err := violations.Err(); err != nil {
		return Updated{}, err
	}

	stored := p.withMovedNodes(given.merge(instance.Request.Parameters, changes), instance.Request, cluster)

	return Updated{cluster, given.DeletionProtection, upgradeTime, stored}, nil
}

// upgradeTime parses UpgradeTime. It returns zero if the parameter is absent.
func (given parameters) upgradeTime(violations *Violations) time.Time {
	if given.UpgradeTime == "" { // absent: the schema rejects an empty string
		return time.Time{}
	}

	at, err := time.Parse(time.RFC3339, given.UpgradeTime)
	violations.require(err == nil, paramUpgradeTime, "format", "must be a time such as 2030-01-02T22:00:00Z")

	return at.UTC()
}

// clampNodes moves the limits of the autoscaler into the bounds of the plan. The limits can be out of bounds if the cluster was
// created with another plan or with an earlier version of this plan. If the plan has no bounds, clampNodes sets the plan's
// defaults.
func (p *Plan) clampNodes(cluster *environment.Cluster) {
	if p.Nodes.Highest == 0 {
		cluster.AutoScalerMin, cluster.AutoScalerMax = p.Nodes.Min, p.Nodes.Max

		return
	}

	cluster.AutoScalerMin = min(max(cluster.AutoScalerMin, p.Nodes.Lowest), p.Nodes.Highest)
	cluster.AutoScalerMax = min(max(cluster.AutoScalerMax, p.Nodes.Lowest), p.Nodes.Highest)
}

// Upgrade returns the cluster with the Kubernetes version that new clusters get. A cluster with a later version keeps that
// version, because Kubernetes cannot be downgraded. An older cluster gets at most the next minor version, because Kubernetes
// cannot skip one.
func (p *Plan) Upgrade(cluster environment.Cluster) environment.Cluster {
	current, offered, later := p.laterVersion(cluster)

	switch {
	case !later:
	case current.Major() == offered.Major() && offered.Minor() > current.Minor()+1:
		cluster.KubernetesVersion = fmt.Sprintf("%d.%d", current.Major(), current.Minor()+1)
	default:
		cluster.KubernetesVersion = p.kubernetesVersion
	}

	return cluster
}

// Recreate returns the cluster with the Kubernetes version of new clusters, unless it has a later version: a suspended instance gets a new
// cluster when it is resumed, and Gardener may no longer offer the version of the former one.
func (p *Plan) Recreate(cluster environment.Cluster) environment.Cluster {
	if _, _, later := p.laterVersion(cluster); later {
		cluster.KubernetesVersion = p.kubernetesVersion
	}

	return cluster
}

// laterVersion returns the Kubernetes versions of the cluster and of new clusters, and whether the latter is later. It is not for a cluster
// that the tenant brings and maintains.
func (p *Plan) laterVersion(cluster environment.Cluster) (current, offered *semver.Version, later bool) {
	current, err := semver.NewVersion(cluster.KubernetesVersion)
	offered, offeredErr := semver.NewVersion(p.kubernetesVersion)

	return current, offered, cluster.Own == nil && err == nil && offeredErr == nil && current.LessThan(offered)
}

// MayBecome reports whether an instance of this plan can be changed to the target plan, which may be the same plan. Another plan must
// be offered, as for an order.
func (p *Plan) MayBecome(target *Plan) bool {
	return p.ID == target.ID || target.offered && slices.Contains(p.BecomesPlans, target.Name)
}
