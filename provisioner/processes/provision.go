package processes

import (
	"slices"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// provision creates a cluster without Kyma.
func (o Options) provision() definition {
	return definition{Kind: operation.KindProvisionNoInstall, Limit: o.Limit, Stages: o.creation()}
}

// provisionWithKyma creates a cluster and installs Kyma on it.
func (o Options) provisionWithKyma() definition {
	install := o.installation("StartingInstallation", o.Timeouts.InstallationStart, o.Timeouts.Installation)

	return definition{Kind: operation.KindProvision, Limit: o.Limit, Stages: slices.Concat(o.creation(), install, o.Connected)}
}

// creation returns the stages that both kinds of provisioning share. Gardener assigns the domain minutes before the cluster is
// ready, and the stages in Named report it to Director immediately. When an operator retries an operation that failed in one of
// the waits, the new operation writes the Shoot again, because Gardener may have given up.
func (o Options) creation() []stage {
	creating := one("CreatingCluster", "Create_Shoot", o.createShoot, process.Notes{
		Does: "Creates the Shoot.", System: systemGardener, Creates: "the Shoot and the objects that it refers to",
	})
	domain := one("WaitingForClusterDomain", "Wait_For_Cluster_Domain", o.waitForDomain, process.Notes{
		Does: "Waits until Gardener has assigned a domain to the cluster.", System: systemGardener, Limit: o.Timeouts.Domain,
	})
	wait := one("WaitingForClusterCreation", "Wait_For_Cluster_Creation", o.waitForShoot(o.Timeouts.Creation, nil), process.Notes{
		Does: "Waits until Gardener has created the cluster.", System: systemGardener, Limit: o.Timeouts.Creation,
	})
	domain.RetryFrom, wait.RetryFrom = creating.Name, creating.Name

	return slices.Concat([]stage{creating, domain}, o.Named, []stage{wait, o.administrators()})
}
