package provisioning

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Shoots is what the steps need of Gardener. Its errors are of package failure.
type Shoots interface {
	Apply(ctx context.Context, shoot *gardencorev1beta1.Shoot) error
	Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error)
	Retry(ctx context.Context, shoot *gardencorev1beta1.Shoot) error
}

// BuildShoot makes the Shoot of a runtime from what was asked for.
type BuildShoot func(runtime runtimes.Runtime, operationID string) (*gardencorev1beta1.Shoot, error)

// Options are what the process needs.
type Options struct {
	Shoots Shoots
	Build  BuildShoot
	// DomainTimeout and CreationTimeout bound the waits for Gardener.
	DomainTimeout   time.Duration
	CreationTimeout time.Duration
	// Poll is how often the Shoot is looked at when no change of it is told.
	Poll  time.Duration
	Limit time.Duration
}

// Process makes a cluster without Kyma.
func Process(options Options) process.Process[operation.Data] {
	retry := process.DefaultRetry()

	return process.Process[operation.Data]{
		Kind:  operation.KindProvisionNoInstall,
		Limit: options.Limit,
		Stages: []process.Stage[operation.Data]{
			{Name: "CreatingCluster", Retry: retry, Steps: process.Steps[operation.Data](
				createShoot{shoots: options.Shoots, build: options.Build},
			)},
			{Name: "WaitingForClusterDomain", Retry: retry, Steps: process.Steps[operation.Data](
				waitForDomain{shoots: options.Shoots, poll: options.Poll, limit: options.DomainTimeout},
			)},
			{Name: "WaitingForClusterCreation", Retry: retry, Steps: process.Steps[operation.Data](
				waitForCreation{shoots: options.Shoots, poll: options.Poll, limit: options.CreationTimeout},
			)},
		},
	}
}
