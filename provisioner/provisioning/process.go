package provisioning

import (
	"context"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/administrators"
	"github.com/environment-broker/environment-broker/provisioner/clusterwait"
	"github.com/environment-broker/environment-broker/provisioner/kyma"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Shoots is what the steps need of Gardener. Its errors are of package failure.
type Shoots interface {
	clusterwait.Shoots

	Apply(ctx context.Context, objects *shoot.Objects) error
}

// BuildShoot makes the Shoot of a runtime from what was asked for.
type BuildShoot func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error)

// Options are what the process needs.
type Options struct {
	Shoots   Shoots
	Build    BuildShoot
	Clusters administrators.Clusters
	// DomainTimeout and CreationTimeout bound the waits for Gardener, BindingsTimeout how long the cluster may refuse its
	// administrators.
	DomainTimeout   time.Duration
	CreationTimeout time.Duration
	BindingsTimeout time.Duration
	// OnceNamed are stages that follow as soon as the cluster has its domain.
	OnceNamed []process.Stage[operation.Data]
	// Poll is how often the Shoot is looked at when no change of it is told.
	Poll  time.Duration
	Limit time.Duration
}

// Process makes a cluster without Kyma.
func Process(options Options) process.Process[operation.Data] {
	return process.Process[operation.Data]{
		Kind: operation.KindProvisionNoInstall, Limit: options.Limit, Stages: options.stages(),
	}
}

// WithKyma makes a cluster and installs Kyma on it. The stages that connect its agent follow, if there are any.
func WithKyma(options Options, installation kyma.Options, connect ...process.Stage[operation.Data]) process.Process[operation.Data] {
	installation.Starting = "StartingInstallation"

	return process.Process[operation.Data]{
		Kind: operation.KindProvision, Limit: options.Limit,
		Stages: slices.Concat(options.stages(), kyma.Stages(installation), connect),
	}
}

// stages make a cluster.
func (o Options) stages() []process.Stage[operation.Data] {
	retry := process.DefaultRetry()

	return slices.Concat([]process.Stage[operation.Data]{
		{Name: "CreatingCluster", Retry: retry, Steps: process.Steps[operation.Data](
			createShoot{shoots: o.Shoots, build: o.Build},
		)},
		{Name: "WaitingForClusterDomain", Retry: retry, Steps: process.Steps[operation.Data](
			waitForDomain{shoots: o.Shoots, poll: o.Poll, limit: o.DomainTimeout},
		)},
	}, o.OnceNamed, []process.Stage[operation.Data]{
		{Name: "WaitingForClusterCreation", Retry: retry, Steps: process.Steps[operation.Data](
			clusterwait.Settled(clusterwait.Options{
				Name: "Wait_For_Cluster_Creation", Shoots: o.Shoots, Poll: o.Poll, Limit: o.CreationTimeout,
			}),
		)},
		administrators.Stage(o.Clusters, o.BindingsTimeout),
	})
}
