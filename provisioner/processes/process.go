// Package processes defines the Provisioner's processes: one for each kind of operation on a runtime. Each step has its own file.
//
// The function All returns the processes. A step is a method of Options with the signature of process.RunFunc. Any step may run
// again, even on another replica, after a crash or a lost response, so each step is idempotent. A step that creates or changes
// something in another system calls Save first: Save fails if the replica has lost the lease. The notes of each step describe it
// to operators; docs/operator/provisioner-processes.md is generated from them.
//
// The names of stages and steps are stored with operations and visible to clients, and must not change. A new step gets its own
// file, and a place in the process that needs it. A step that polls, or a step of a removal, also gets its own stage, because
// the engine repeats a stage as a whole.
package processes

import (
	"context"
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

// Shoots changes and reads the Shoots in the Gardener project. gardener.Client implements it and documents the methods.
type Shoots interface {
	shoot.Reader

	Apply(ctx context.Context, objects *shoot.Objects) error
	Change(ctx context.Context, read *gardencorev1beta1.Shoot, objects *shoot.Objects) error
	SetHibernation(ctx context.Context, read *gardencorev1beta1.Shoot, asleep bool, annotations map[string]string) error
	Delete(ctx context.Context, name, runtimeID string) error
	Retry(ctx context.Context, shoot *gardencorev1beta1.Shoot) error
	Tidy(ctx context.Context, runtimeID string, present *gardencorev1beta1.Shoot) error
}

// Clusters changes objects inside the clusters of runtimes.
type Clusters interface {
	// Connect returns a configuration with cluster-admin rights, valid for a few minutes. The caller must call disconnect. After an
	// error, disconnect is nil.
	Connect(ctx context.Context, shootName string) (cluster *rest.Config, disconnect func(), err error)
	// SetAdministrators makes exactly the given users cluster-admins. All other users from earlier calls lose the role. It reads the
	// present administrators, calls confirm, and then changes them unless they have changed since they were read. If confirm fails,
	// SetAdministrators changes nothing and returns that error.
	SetAdministrators(ctx context.Context, shootName string, users []string, confirm func(context.Context) error) error
	// RemoveServices deletes the service instances of the cluster-wide brokers whose address starts with the prefix. It deletes the
	// bindings of each instance first. It returns a description of the remaining instances for users, or "" if all are gone.
	RemoveServices(ctx context.Context, shootName, prefix string) (left string, err error)
	// ReleaseBrokers removes the finalizers of the service brokers in the cluster.
	ReleaseBrokers(ctx context.Context, shootName string) error
}

// Runtimes records the results of operations in the rows of runtimes. runtimes.Store implements it.
type Runtimes interface {
	// Configured records the configuration that an operation has applied to the runtime. It does nothing if a later operation,
	// which has a higher position, has already recorded one.
	Configured(ctx context.Context, runtime runtimes.Runtime, position int64) error
	// MarkDeleted stores the time of the deletion, unless the row already has one.
	MarkDeleted(ctx context.Context, id string, at time.Time) error
}

// Options are the dependencies and limits of the steps. All are required unless the comment allows nil or an empty value.
type Options struct {
	Shoots    Shoots
	Clusters  Clusters
	Runtimes  Runtimes
	Releases  installation.Releases
	Installer installation.Installer
	// ForgetBundles removes a runtime whose cluster is gone from the bundle provisioner. It is nil if there is no bundle provisioner.
	ForgetBundles func(ctx context.Context, runtimeID string) (installation.Progress, error)
	// Build returns the Shoot of a runtime and the objects that the Shoot refers to. It does not call other systems.
	Build func(runtime runtimes.Runtime, operationID string) (*shoot.Objects, error)
	// Traceparent returns an operation's span in the form of a traceparent header, or an empty string. Nil means that operations are
	// not traced.
	Traceparent func(process.Record) string
	// ServiceBrokers is the address prefix of the service brokers whose instances are deleted before a cluster with Kyma is
	// deleted.
	ServiceBrokers string

	// Poll is the interval at which a waiting step reads its Shoot if the watch reports no change.
	Poll time.Duration
	// WorkPoll is the pause between two units of work inside a cluster.
	WorkPoll time.Duration
	// Limit is the maximum duration of an operation.
	Limit    time.Duration
	Timeouts Timeouts

	// These stages come from other packages and are empty if Director is disabled. The stages in Named run when a cluster has its
	// domain, those in Connected after the installation of Kyma, and those in Gone after the deletion of a cluster.
	Named, Connected, Gone []stage
	// Reconnect configures the process that reconnects the runtime agent.
	Reconnect agent.Options
}

// Timeouts limit individual waits. An operation fails when a wait exceeds its limit. Cleanup is the exception: the removal
// continues.
type Timeouts struct {
	// Domain, Creation, Upgrade, Hibernation and Deletion limit Gardener's work. Refresh limits the time until Gardener starts to
	// work on a change.
	Domain, Creation, Refresh, Upgrade, Hibernation, Deletion time.Duration
	// Bindings limits how long the API server of a cluster may take to accept the administrators, after a creation, a change or a wake-up.
	Bindings time.Duration
	// InstallationStart and KymaUpgradeStart limit how long a cluster may take to accept the first unit of work. Installation and
	// KymaUpgrade limit the rest of the work.
	InstallationStart, Installation, KymaUpgradeStart, KymaUpgrade time.Duration
	// Cleanup limits the deletion of service instances before a cluster is deleted.
	Cleanup time.Duration
}

// The systems that the steps call. The kubeconfig for a runtime comes from Gardener.
const (
	systemGardener = "Gardener"
	systemRuntime  = "Gardener, runtime"
	systemKyma     = "release registry, " + systemRuntime + " or " + systemBundles
	systemBundles  = "bundle provisioner"
)

type (
	stage      = process.Stage[operation.Data]
	definition = process.Process[operation.Data]
)

// All returns the processes for all kinds of operations, in no particular order.
func (o Options) All() []definition {
	return []definition{
		o.provision(), o.provisionWithKyma(),
		o.upgrade(), o.hibernate(), o.wakeUp(), o.upgradeKyma(operation.KindUpgrade), o.upgradeKyma(operation.KindRollBack), o.upgradeRuntime(),
		o.deprovision(), o.deprovisionWithKyma(),
		agent.Reconnect(o.Reconnect),
	}
}

// build returns the Shoot of the operation's runtime, with the trace of the operation.
func (o Options) build(op operation.Operation) (*shoot.Objects, error) {
	objects, err := o.Build(op.Data.Runtime, op.ID)
	if err != nil {
		return nil, err
	}

	if o.Traceparent != nil {
		objects.SetTrace(o.Traceparent(op.Record))
	}

	return objects, nil
}

// one returns a stage with one step and the default retry policy. Both names are stored with operations and must not change.
func one(name, step string, run process.RunFunc[operation.Data], notes process.Notes) stage {
	return stage{Name: name, Retry: process.DefaultRetry(), Steps: []process.Task[operation.Data]{task(step, run, notes)}}
}

// task returns the task that always runs the step.
func task(step string, run process.RunFunc[operation.Data], notes process.Notes) process.Task[operation.Data] {
	return process.Task[operation.Data]{Step: process.StepFunc(step, run), Notes: notes}
}

// within returns the stage with a time limit for retries after transient errors.
func within(window time.Duration, stage stage) stage {
	stage.Retry.Window = window

	return stage
}
