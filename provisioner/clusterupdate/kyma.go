package clusterupdate

import (
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/kyma"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// UpgradeKyma brings a cluster to another version, or another configuration, of Kyma.
func UpgradeKyma(options Options, installation kyma.Options) process.Process[operation.Data] {
	return options.changeKyma(operation.KindUpgrade, installation)
}

// RollBackKyma brings a cluster back to the Kyma that an upgrade found on it.
func RollBackKyma(options Options, installation kyma.Options) process.Process[operation.Data] {
	return options.changeKyma(operation.KindRollBack, installation)
}

// changeKyma is the same for both: what the cluster is to have stands in the operation.
func (o Options) changeKyma(kind string, installation kyma.Options) process.Process[operation.Data] {
	installation.Starting = "StartingUpgrade"

	return process.Process[operation.Data]{
		Kind:  kind,
		Limit: o.Limit,
		Stages: append(kyma.Stages(installation), process.Stage[operation.Data]{
			Name: "UpdatingUpgradeState", Retry: process.DefaultRetry(),
			Steps: process.Steps[operation.Data](recordConfiguration{runtimes: o.Runtimes}),
		}),
	}
}
