package provisioning

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
	OrderRuntime(ctx context.Context, caller provisionerclient.Caller, instance environment.Instance, targetSecret string,
	) (provisionerclient.Operation, error)
}

// Instances is where the runtime of an instance is recorded.
type Instances interface {
	Find(ctx context.Context, id string) (environment.Instance, error)
	SetRuntime(ctx context.Context, by process.Record, instance environment.Instance, runtimeID string) error
	// Resume records that a suspended instance has a runtime again. Its errors are of package failure.
	Resume(ctx context.Context, by process.Record, instance environment.Instance) error
}

// Options are what the process needs.
type Options struct {
	Provisioner Provisioner
	Instances   Instances
	// TargetSecrets name the credentials of each provider in Gardener.
	TargetSecrets map[string]string
	Access        RuntimeAccess
	// Waiter waits for the Provisioner.
	Waiter provisionerwait.Waiter
	Limit  time.Duration
}

// made says that the runtime is the Provisioner's, and not one that the tenant brings.
func made(operation Operation) bool { return operation.Data.Instance.Request.Cluster.Own == nil }

// ordered says that there is an order to wait for.
func ordered(operation Operation) bool { return operation.Data.Ordered }

// when has the tasks run under the condition only.
func when(condition func(Operation) bool, tasks []process.Task[environment.Data]) []process.Task[environment.Data] {
	for i := range tasks {
		tasks[i].When = condition
	}

	return tasks
}

// Process makes a runtime. For a cluster that the tenant brings it only looks whether that answers.
func Process(options Options) process.Process[environment.Data] {
	retry := process.DefaultRetry()

	return process.Process[environment.Data]{
		Kind:  environment.KindProvision,
		Limit: options.Limit,
		Stages: []process.Stage[environment.Data]{
			{Name: "start", Retry: retry, Steps: process.Steps[environment.Data](
				starting{instances: options.Instances},
			)},
			{Name: "create_runtime", Retry: retry, Steps: when(made, process.Steps[environment.Data](
				initialization{},
				resolveTargetSecret{secrets: options.TargetSecrets},
				createRuntime{provisioner: options.Provisioner, instances: options.Instances},
			))},
			{Name: "check_runtime", Retry: retry, RetryFrom: "start", Steps: when(ordered, process.Steps[environment.Data](
				checkRuntime{waiter: options.Waiter},
			))},
			{Name: "post_actions", Retry: retry, Steps: process.Skippable[environment.Data](
				getKubeconfig{access: options.Access},
			)},
		},
	}
}

// Resumption makes the runtime of a suspended instance anew, of the same name.
func Resumption(options Options) process.Process[environment.Data] {
	resumption := Process(options)
	resumption.Kind = environment.KindResume
	resumption.Stages = append(resumption.Stages, process.Stage[environment.Data]{
		Name: "resumed", Retry: process.DefaultRetry(),
		Steps: process.Steps[environment.Data](resumeInstance{instances: options.Instances}),
	})

	return resumption
}
