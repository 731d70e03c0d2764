package update

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// Operation is the input and the result of the steps.
type Operation = process.Operation[environment.Data]

// Step is a step of the process.
type Step = process.Step[environment.Data]

// Provisioner changes runtimes.
type Provisioner interface {
	UpgradeRuntime(ctx context.Context, caller provisionerclient.Caller, instance, changed environment.Instance) (provisionerclient.Operation, error)
}

// Instances reads instances and records updates.
type Instances interface {
	Find(ctx context.Context, id string) (environment.Instance, error)
	// Update returns the effect that applies the change to the instance's row.
	Update(instance environment.Instance, change environment.Update) process.Effect
}

// RuntimeAccess checks whether an instance's runtime responds.
type RuntimeAccess interface {
	Probe(ctx context.Context, instance environment.Instance) error
}

// Options are the dependencies of the process.
type Options struct {
	Provisioner Provisioner
	Instances   Instances
	Access      RuntimeAccess
	Waiter      provisionerwait.Waiter
	// Limit is the maximum duration of an operation.
	Limit time.Duration
}

// ownCluster reports whether the cluster belongs to the tenant. The Provisioner does not manage such a cluster.
func ownCluster(operation Operation) bool {
	return operation.Data.Update != nil && operation.Data.Update.Cluster.Own != nil
}

// managed reports whether the Provisioner created the runtime.
func managed(operation Operation) bool { return !ownCluster(operation) }

// Process returns the process that changes a runtime. For a tenant's own cluster, the process only checks that the
// cluster responds to the new kubeconfig.
func Process(options Options) process.Process[environment.Data] {
	retry := process.DefaultRetry()

	return process.Process[environment.Data]{
		Kind:  environment.KindUpdate,
		Limit: options.Limit,
		Stages: []process.Stage[environment.Data]{
			{Name: "cluster", Retry: retry, Steps: []process.Task[environment.Data]{
				{Step: start(options.Instances)},
				{Step: upgradeShoot{provisioner: options.Provisioner, waiter: options.Waiter}, When: managed},
			}},
			{Name: "check", Retry: retry, RetryFrom: "cluster", Steps: []process.Task[environment.Data]{
				{Step: checkRuntime(options.Waiter), When: managed},
				{Step: checkOwnCluster(options.Access), When: ownCluster},
			}},
			{Name: "record", Retry: retry, Steps: process.Steps[environment.Data](
				recordUpdate(options.Instances),
			)},
		},
	}
}
