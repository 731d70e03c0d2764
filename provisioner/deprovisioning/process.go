package deprovisioning

import (
	"context"
	"slices"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/kyma"
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

// Clusters is where there is something to clean up. Its errors are of package failure.
type Clusters interface {
	kyma.Clusters

	// RemoveServices has those services go that the cluster got from brokers whose address begins like this, each after its bindings. It
	// tells people what is left: nothing once all are gone.
	RemoveServices(ctx context.Context, shootName, address string) (left string, err error)
	// ReleaseBrokers has nothing keep the service brokers of the cluster from going.
	ReleaseBrokers(ctx context.Context, shootName string) error
}

// Kyma is what the removal of a cluster with Kyma needs besides.
type Kyma struct {
	Clusters  Clusters
	Installer installation.Installer
	// ServiceBrokers is how the addresses begin of the service brokers whose services have to go before the cluster does.
	ServiceBrokers string
	// CleanupTimeout bounds the wait for those services.
	CleanupTimeout time.Duration
	// Poll is how long it takes from one piece of work in the cluster to the next.
	Poll time.Duration
}

const (
	// releaseTimeout bounds the tries to reach the service brokers.
	releaseTimeout = 2 * time.Minute
	// uninstallTimeout bounds the wait for what Kyma leaves behind outside of the cluster.
	uninstallTimeout = 5 * time.Minute
)

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
	return process.Process[operation.Data]{
		Kind: operation.KindDeprovisionNoInstall, Limit: options.Limit, Stages: options.stages(),
	}
}

// WithKyma removes a cluster on which Kyma is installed. What cannot be cleaned up in time goes with the cluster.
func WithKyma(options Options, with Kyma) process.Process[operation.Data] {
	stages := []process.Stage[operation.Data]{
		stage("CleanupCluster", cleanUp{
			shoots: options.Shoots, clusters: with.Clusters, brokers: with.ServiceBrokers, poll: with.Poll, limit: with.CleanupTimeout,
		}),
		stage("ReleasingServiceBrokers", releaseBrokers{
			shoots: options.Shoots, clusters: with.Clusters, poll: with.Poll, limit: releaseTimeout,
		}),
		stage("TriggerKymaUninstall", uninstall{
			shoots: options.Shoots, clusters: with.Clusters, installer: with.Installer, poll: with.Poll, limit: uninstallTimeout,
		}),
	}

	return process.Process[operation.Data]{
		Kind: operation.KindDeprovision, Limit: options.Limit, Stages: append(stages, options.stages()...),
	}
}

// stages remove a cluster.
func (o Options) stages() []process.Stage[operation.Data] {
	return slices.Concat([]process.Stage[operation.Data]{
		stage("DeprovisionCluster", deleteShoot{shoots: o.Shoots}),
		stage("WaitForClusterDeletion", waitForDeletion{shoots: o.Shoots, poll: o.Poll, limit: o.DeletionTimeout}),
	}, o.OnceGone, []process.Stage[operation.Data]{
		stage("RecordingDeletion", markDeleted{runtimes: o.Runtimes, now: o.Now}),
		stage("VerifyClusterDeletion", verifyGone{shoots: o.Shoots, poll: o.Poll, limit: o.DeletionTimeout}),
	})
}

func stage(name string, step process.Step[operation.Data]) process.Stage[operation.Data] {
	return process.Stage[operation.Data]{Name: name, Retry: process.DefaultRetry(), Steps: process.Steps(step)}
}
