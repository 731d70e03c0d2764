package upgrading

import (
	"context"
	"encoding/json"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

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

	Change(ctx context.Context, read *gardencorev1beta1.Shoot, objects *shoot.Objects) error
	Tidy(ctx context.Context, runtimeID string, present *gardencorev1beta1.Shoot) error
}

// Runtimes is where it is recorded what a cluster has become.
type Runtimes interface {
	Configured(ctx context.Context, id string, configuration json.RawMessage, position int64) error
}

// BuildShoot makes the Shoot of a runtime from what was asked for.
type BuildShoot func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error)

// Options are what the process needs.
type Options struct {
	Shoots   Shoots
	Build    BuildShoot
	Clusters administrators.Clusters
	Runtimes Runtimes
	// RefreshTimeout bounds how long Gardener may leave the change alone, UpgradeTimeout how long it may take for it, and
	// BindingsTimeout how long the cluster may refuse its administrators.
	RefreshTimeout  time.Duration
	UpgradeTimeout  time.Duration
	BindingsTimeout time.Duration
	// Poll is how often the Shoot is looked at when no change of it is told.
	Poll  time.Duration
	Limit time.Duration
}

// Process changes a cluster.
func Process(options Options) process.Process[operation.Data] {
	const ordering = "UpgradingShoot"

	waiting := func(name string, step process.Step[operation.Data]) process.Stage[operation.Data] {
		return process.Stage[operation.Data]{
			Name: name, Retry: process.DefaultRetry(), RetryFrom: ordering, Steps: process.Steps(step),
		}
	}

	return process.Process[operation.Data]{
		Kind:  operation.KindUpgradeShoot,
		Limit: options.Limit,
		Stages: []process.Stage[operation.Data]{
			{Name: ordering, Retry: process.DefaultRetry(), Steps: process.Steps[operation.Data](
				changeShoot{shoots: options.Shoots, build: options.Build},
			)},
			waiting("WaitingForShootNewVersion", clusterwait.TakenUp(clusterwait.Options{
				Name: "Wait_For_Shoot_New_Version", Shoots: options.Shoots, Poll: options.Poll, Limit: options.RefreshTimeout,
			})),
			waiting("WaitingForShootUpgrade", clusterwait.Settled(clusterwait.Options{
				Name: "Wait_For_Shoot_Upgrade", Shoots: options.Shoots, Poll: options.Poll, Limit: options.UpgradeTimeout,
			})),
			administrators.Stage(options.Clusters, options.BindingsTimeout),
			{Name: "RecordingConfiguration", Retry: process.DefaultRetry(), Steps: process.Steps[operation.Data](
				recordConfiguration{runtimes: options.Runtimes},
				tidy{shoots: options.Shoots},
			)},
		},
	}
}
