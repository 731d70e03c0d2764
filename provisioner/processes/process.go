// Package processes defines what the Provisioner does with runtimes: a process for each kind of operation, and a file for each
// step.
//
// All returns the processes. A step is a method of Options with the signature of process.RunFunc; a process lists its stages, and
// the names of stages and steps are stored with operations and must not change. A new step gets a file, and a stage in the
// process that needs it. A step that polls and every step of a removal has a stage of its own, so that the others are not
// repeated with it.
package processes

import (
	"context"
	"encoding/json"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/agent"
	"github.com/environment-broker/environment-broker/provisioner/installation"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

// Shoots is the project in Gardener. Its errors are of package failure. Package gardener documents the methods.
type Shoots interface {
	shoot.Reader

	Apply(ctx context.Context, objects *shoot.Objects) error
	Change(ctx context.Context, read *gardencorev1beta1.Shoot, objects *shoot.Objects) error
	Delete(ctx context.Context, name, runtimeID string) error
	Retry(ctx context.Context, shoot *gardencorev1beta1.Shoot) error
	Tidy(ctx context.Context, runtimeID string, present *gardencorev1beta1.Shoot) error
}

// Clusters reaches the API servers of runtimes. Its errors are of package failure.
type Clusters interface {
	// Connect opens a cluster with all rights, for some minutes. The caller disconnects.
	Connect(ctx context.Context, shootName string) (cluster *rest.Config, disconnect func(), err error)
	// SetAdministrators makes exactly these users administrators of the cluster: users named only by an earlier call lose their rights.
	SetAdministrators(ctx context.Context, shootName string, users []string) error
	// RemoveServices deletes the services that the cluster got from brokers whose address has the prefix, each after its
	// bindings. It describes the remaining ones, and returns "" once all are gone.
	RemoveServices(ctx context.Context, shootName, prefix string) (left string, err error)
	// ReleaseBrokers removes the finalizers of the service brokers in the cluster.
	ReleaseBrokers(ctx context.Context, shootName string) error
}

// Runtimes records the results of operations in the rows of runtimes. Configured ignores a configuration whose position is below
// that of the recorded one.
type Runtimes interface {
	Configured(ctx context.Context, id string, configuration json.RawMessage, position int64) error
	MarkDeleted(ctx context.Context, id string, at time.Time) error
}

// Options are the dependencies and limits of the steps.
type Options struct {
	Shoots    Shoots
	Clusters  Clusters
	Runtimes  Runtimes
	Releases  installation.Releases
	Installer installation.Installer
	// Build returns the Shoot of a runtime.
	Build func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error)
	Now   func() time.Time
	// ServiceBrokers is the prefix of the addresses of brokers whose services are deleted before a cluster with Kyma.
	ServiceBrokers string

	// Poll is the interval at which a Shoot is read if no change of it is reported.
	Poll time.Duration
	// WorkPoll is the pause between two pieces of work inside a cluster.
	WorkPoll time.Duration
	// Limit is the limit of every operation.
	Limit    time.Duration
	Timeouts Timeouts

	// Stages of other packages: Named run once a cluster has its domain, Connected after the installation of Kyma, Gone after a
	// cluster is gone.
	Named, Connected, Gone []stage
	// Reconnect connects the agent of a runtime again.
	Reconnect agent.Options
}

// Timeouts limit single waits. An operation fails when it exceeds one, except Cleanup: remaining services are deleted with the
// cluster.
type Timeouts struct {
	// Domain, Creation, Upgrade, Hibernation and Deletion limit the work of Gardener; Refresh the time until it starts a change.
	Domain, Creation, Refresh, Upgrade, Hibernation, Deletion time.Duration
	// Bindings limits how long a cluster may refuse its administrators.
	Bindings time.Duration
	// The starts limit how long a cluster may refuse the first piece of work, the others the whole of it.
	InstallationStart, Installation, KymaUpgradeStart, KymaUpgrade time.Duration
	// Cleanup limits the deletion of services before the deletion of a cluster.
	Cleanup time.Duration
}

type (
	stage      = process.Stage[operation.Data]
	definition = process.Process[operation.Data]
)

// All returns the processes of all kinds of operations.
func (o Options) All() []definition {
	return []definition{
		o.provision(), o.provisionWithKyma(),
		o.upgrade(), o.hibernate(), o.wakeUp(), o.upgradeKyma(operation.KindUpgrade), o.upgradeKyma(operation.KindRollBack),
		o.deprovision(), o.deprovisionWithKyma(),
		agent.Reconnect(o.Reconnect),
	}
}

// one returns a stage of one step.
func one(name, step string, run process.RunFunc[operation.Data]) stage {
	return stage{Name: name, Retry: process.DefaultRetry(), Steps: process.Steps(process.StepFunc(step, run))}
}

// within limits how long the stage retries transient errors.
func within(window time.Duration, stage stage) stage {
	stage.Retry.Window = window

	return stage
}
