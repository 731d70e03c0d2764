package provisioning

import (
	"context"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/administrators"
	"github.com/environment-broker/environment-broker/provisioner/clusterwait"
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
	retry := process.DefaultRetry()

	begin := []process.Stage[operation.Data]{
		{Name: "CreatingCluster", Retry: retry, Steps: process.Steps[operation.Data](
			createShoot{shoots: options.Shoots, build: options.Build},
		)},
		{Name: "WaitingForClusterDomain", Retry: retry, Steps: process.Steps[operation.Data](
			waitForDomain{shoots: options.Shoots, poll: options.Poll, limit: options.DomainTimeout},
		)},
	}
	end := []process.Stage[operation.Data]{
		{Name: "WaitingForClusterCreation", Retry: retry, Steps: process.Steps[operation.Data](
			clusterwait.Settled(clusterwait.Options{
				Name: "Wait_For_Cluster_Creation", Shoots: options.Shoots, Poll: options.Poll, Limit: options.CreationTimeout,
			}),
		)},
		administrators.Stage(options.Clusters, options.BindingsTimeout),
	}

	return process.Process[operation.Data]{
		Kind: operation.KindProvisionNoInstall, Limit: options.Limit, Stages: slices.Concat(begin, options.OnceNamed, end),
	}
}
