package deprovisioning

import (
	"context"
	"slices"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// Shoots is what the steps need of Gardener. Its errors are of package failure.
type Shoots interface {
	Get(ctx context.Context, name string) (*gardencorev1beta1.Shoot, error)
	Delete(ctx context.Context, name, runtimeID string) error
	Retry(ctx context.Context, shoot *gardencorev1beta1.Shoot) error
	Tidy(ctx context.Context, runtimeID string, present *gardencorev1beta1.Shoot) error
}

// Runtimes is where the end of a runtime is recorded.
type Runtimes interface {
	MarkDeleted(ctx context.Context, id string, at time.Time) error
}

// Options are what the process needs.
type Options struct {
	Shoots   Shoots
	Runtimes Runtimes
	// Now is the clock.
	Now func() time.Time
	// DeletionTimeout bounds the wait for Gardener.
	DeletionTimeout time.Duration
	// OnceGone are stages that follow when the cluster is gone and before that is recorded.
	OnceGone []process.Stage[operation.Data]
	// Poll is how often the Shoot is looked at when no change of it is told.
	Poll  time.Duration
	Limit time.Duration
}

// Process removes a cluster without Kyma.
func Process(options Options) process.Process[operation.Data] {
	stage := func(name string, step process.Step[operation.Data]) process.Stage[operation.Data] {
		return process.Stage[operation.Data]{Name: name, Retry: process.DefaultRetry(), Steps: process.Steps(step)}
	}

	remove := []process.Stage[operation.Data]{
		stage("DeprovisionCluster", deleteShoot{shoots: options.Shoots}),
		stage("WaitForClusterDeletion", waitForDeletion{
			shoots: options.Shoots, poll: options.Poll, limit: options.DeletionTimeout,
		}),
	}
	record := []process.Stage[operation.Data]{
		stage("CleanupCluster", markDeleted{runtimes: options.Runtimes, now: options.Now}),
		stage("VerifyClusterDeletion", verifyGone{
			shoots: options.Shoots, poll: options.Poll, limit: options.DeletionTimeout,
		}),
	}

	return process.Process[operation.Data]{
		Kind: operation.KindDeprovisionNoInstall, Limit: options.Limit, Stages: slices.Concat(remove, options.OnceGone, record),
	}
}
