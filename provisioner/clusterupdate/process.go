package clusterupdate

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
	// RefreshTimeout bounds how long Gardener may leave a change alone, UpgradeTimeout and HibernationTimeout how long it may take for
	// it, and BindingsTimeout how long the cluster may refuse its administrators.
	RefreshTimeout     time.Duration
	UpgradeTimeout     time.Duration
	HibernationTimeout time.Duration
	BindingsTimeout    time.Duration
	// Poll is how often the Shoot is looked at when no change of it is told.
	Poll  time.Duration
	Limit time.Duration
}

// Upgrade makes a cluster what its runtime is to be.
func Upgrade(options Options) process.Process[operation.Data] {
	const ordering = "UpgradingShoot"

	return process.Process[operation.Data]{
		Kind:  operation.KindUpgradeShoot,
		Limit: options.Limit,
		Stages: []process.Stage[operation.Data]{
			options.ordered(ordering, nil),
			options.takenUp(ordering),
			options.settled(ordering, "WaitingForShootUpgrade", "Wait_For_Shoot_Upgrade", options.UpgradeTimeout, nil),
			administrators.Stage(options.Clusters, options.BindingsTimeout),
			{Name: "RecordingConfiguration", Retry: process.DefaultRetry(), Steps: process.Steps[operation.Data](
				recordConfiguration{runtimes: options.Runtimes},
				tidy{shoots: options.Shoots},
			)},
		},
	}
}

// Hibernate stops the machines of a cluster, and its control plane.
func Hibernate(options Options) process.Process[operation.Data] {
	const ordering = "HibernatingShoot"

	return process.Process[operation.Data]{
		Kind:  operation.KindHibernate,
		Limit: options.Limit,
		Stages: []process.Stage[operation.Data]{
			options.ordered(ordering, new(true)),
			options.takenUp(ordering),
			options.settled(ordering, "WaitForHibernation", "Wait_For_Hibernation", options.HibernationTimeout, fellAsleep),
		},
	}
}

// WakeUp brings a cluster back that was hibernated. Its administrators may have been exchanged while it slept.
func WakeUp(options Options) process.Process[operation.Data] {
	const ordering = "WakingShoot"

	return process.Process[operation.Data]{
		Kind:  operation.KindWakeUp,
		Limit: options.Limit,
		Stages: []process.Stage[operation.Data]{
			options.ordered(ordering, new(false)),
			options.takenUp(ordering),
			options.settled(ordering, "WaitForWakeUp", "Wait_For_Wake_Up", options.HibernationTimeout, wokeUp),
			administrators.Stage(options.Clusters, options.BindingsTimeout),
		},
	}
}

// ordered is the stage that writes the Shoot.
func (o Options) ordered(name string, asleep *bool) process.Stage[operation.Data] {
	return process.Stage[operation.Data]{Name: name, Retry: process.DefaultRetry(), Steps: process.Steps[operation.Data](
		changeShoot{shoots: o.Shoots, build: o.Build, asleep: asleep},
	)}
}

// takenUp is the stage that waits until Gardener has begun.
func (o Options) takenUp(ordering string) process.Stage[operation.Data] {
	return process.Stage[operation.Data]{
		Name: "WaitingForShootNewVersion", Retry: process.DefaultRetry(), RetryFrom: ordering,
		Steps: process.Steps(clusterwait.TakenUp(clusterwait.Options{
			Name: "Wait_For_Shoot_New_Version", Shoots: o.Shoots, Poll: o.Poll, Limit: o.RefreshTimeout,
		})),
	}
}

// settled is the stage that waits until Gardener has done it.
func (o Options) settled(ordering, name, step string, limit time.Duration, also func(*gardencorev1beta1.Shoot) string,
) process.Stage[operation.Data] {
	return process.Stage[operation.Data]{
		Name: name, Retry: process.DefaultRetry(), RetryFrom: ordering,
		Steps: process.Steps(clusterwait.Settled(clusterwait.Options{
			Name: step, Shoots: o.Shoots, Poll: o.Poll, Limit: limit, Also: also,
		})),
	}
}

func fellAsleep(shoot *gardencorev1beta1.Shoot) string {
	if shoot.Status.IsHibernated {
		return ""
	}

	return "Gardener has not put the cluster to sleep yet"
}

func wokeUp(shoot *gardencorev1beta1.Shoot) string {
	if !shoot.Status.IsHibernated {
		return ""
	}

	return "Gardener has not woken the cluster yet"
}
