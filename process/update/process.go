package update

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// Operation is what the steps get and give back.
type Operation = process.Operation[environment.Data]

// Provisioner is what the steps need of the Provisioner. Its errors are of package failure.
type Provisioner interface {
	UpgradeRuntime(ctx context.Context, caller provisionerclient.Caller, instance environment.Instance, target environment.Cluster,
	) (provisionerclient.Operation, error)
}

// Instances is where instances are recorded. Its errors are of package failure.
type Instances interface {
	Find(ctx context.Context, id string) (environment.Instance, error)
	// Update records what an update made of the instance.
	Update(ctx context.Context, by process.Record, instance environment.Instance, change environment.Update) error
}

// RuntimeAccess checks whether an instance's runtime answers. Its errors are of package failure.
type RuntimeAccess interface {
	Probe(ctx context.Context, instance environment.Instance) error
}

// Options are what the process needs.
type Options struct {
	Provisioner Provisioner
	Instances   Instances
	Access      RuntimeAccess
	// Waiter waits for the Provisioner.
	Waiter provisionerwait.Waiter
	Limit  time.Duration
}

// brought says that the tenant brings the runtime: the Provisioner knows nothing of it.
func brought(operation Operation) bool {
	return operation.Data.Update != nil && operation.Data.Update.Cluster.Own != nil
}

// made says that the runtime is the Provisioner's.
func made(operation Operation) bool { return !brought(operation) }

// Process changes a runtime. Of one that the tenant brings it only looks whether it answers as it is afterwards.
func Process(options Options) process.Process[environment.Data] {
	retry := process.DefaultRetry()

	return process.Process[environment.Data]{
		Kind:  environment.KindUpdate,
		Limit: options.Limit,
		Stages: []process.Stage[environment.Data]{
			{Name: "cluster", Retry: retry, Steps: []process.Task[environment.Data]{
				{Step: initialization{instances: options.Instances}},
				{Step: upgradeShoot{provisioner: options.Provisioner, waiter: options.Waiter}, When: made},
			}},
			{Name: "check", Retry: retry, RetryFrom: "cluster", Steps: []process.Task[environment.Data]{
				{Step: checkRuntime{waiter: options.Waiter}, When: made},
				{Step: checkOwnCluster{access: options.Access}, When: brought},
			}},
			{Name: "record", Retry: retry, Steps: process.Steps[environment.Data](
				recordUpdate{instances: options.Instances},
			)},
		},
	}
}
