package deprovisioning

import (
	"context"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/provisionerwait"
)

// Operation is the input and the result of the steps.
type Operation = process.Operation[environment.Data]

// Step is a step of the process. Its data is environment.Data.
type Step = process.Step[environment.Data]

// Provisioner removes runtimes. If the ID of a runtime never reached the broker, OrderRuntime repeats the earlier order under its
// idempotency key and returns the ID.
type Provisioner interface {
	OrderRuntime(ctx context.Context, caller provisionerclient.Caller, instance environment.Instance, targetSecret string,
		earlierSecrets ...string) (provisionerclient.Operation, error)
	DeprovisionRuntime(ctx context.Context, caller provisionerclient.Caller, runtimeID string) (operationID string, err error)
}

// Instances records the removal of runtimes and instances.
type Instances interface {
	// SetRuntime records the ID of the instance's runtime. It changes nothing if the operation has lost its lease.
	SetRuntime(ctx context.Context, by process.Record, instance environment.Instance, runtimeID string) error
	// Delete returns the effect that removes an instance. If steps were not completed, the instance becomes a leftover.
	Delete(by process.Record, instance environment.Instance, notCompleted []string) process.Effect
	// Suspend returns the effect that records that an instance no longer has a runtime. If change is not nil, the same write also
	// records the change. If steps were not completed, the runtime becomes a leftover.
	Suspend(by process.Record, instance environment.Instance, change *environment.Update, notCompleted []string) process.Effect
	// Cleaned returns the effect that records the result of a cleanup. If all steps were completed, it removes the leftover.
	Cleaned(by process.Record, notCompleted []string) process.Effect
	// RuntimeUser returns the ID of the instance that uses the runtime of a leftover, or "" if there is none. former is the instance
	// of the leftover. While an operation may give the runtime to an instance, the error is of kind failure.Waiting.
	RuntimeUser(ctx context.Context, former environment.Instance) (instanceID string, err error)
	// Reused returns the effect that removes a leftover whose runtime the instance uses, and gives the objects of the leftover to
	// the instance.
	Reused(by process.Record, instanceID string) process.Effect
}

// Provisionings finds the operation that ordered an instance's runtime. LastProvisioning returns the data of the newest operation
// that may have ordered the runtime, or the zero value if there is none.
type Provisionings interface {
	LastProvisioning(ctx context.Context, instanceID string) (environment.Data, error)
}

// Options are the dependencies of the process.
type Options struct {
	Provisioner   Provisioner
	Instances     Instances
	Provisionings Provisionings
	Waiter        provisionerwait.Waiter
	// Accounts is the account pool, or nil if there is none.
	Accounts Accounts
	// Kind returns which Provisioner the broker is connected to. It returns KindUnknown until the Provisioner has responded for
	// the first time.
	Kind func() provisionerclient.Kind
	// LeftOver, if set, is called whenever a runtime may be left over.
	LeftOver func(LeftOver)
	// Runtimes gives access to the runtimes of instances.
	Runtimes Runtimes
	// EDP is nil if the Event Data Platform is turned off.
	EDP EDP
	// IAS is nil if Identity Authentication is turned off.
	IAS IAS
	// AvS is nil if the availability service is turned off.
	AvS AvS
	// LifecycleManager is nil if Lifecycle Manager is turned off.
	LifecycleManager LifecycleManager
	// Reconciler is nil if the Reconciler is turned off.
	Reconciler Reconciler
	Objects    Objects
	// Limit is the maximum duration of an operation.
	Limit time.Duration
}

// LeftOver is the reason why a runtime may be left over. It is the value of a metric label.
type LeftOver string

const (
	// LeftOverUnknown means that a removal failed because the Provisioner does not know the runtime.
	LeftOverUnknown LeftOver = "unknown"
	// LeftOverSkipped means that a removal continued without the Provisioner, because an operator skipped the step.
	LeftOverSkipped LeftOver = "skipped"
)

// leftOverFunc is Options.LeftOver, which may be nil.
type leftOverFunc func(LeftOver)

func (f leftOverFunc) report(reason LeftOver) {
	if f != nil {
		f(reason)
	}
}

// Process returns the process that removes an instance and its runtime.
func Process(options Options) process.Process[environment.Data] {
	return removing(environment.KindDeprovision, options, process.Task[environment.Data]{
		Step: removeInstance(options.Instances), Notes: process.Notes{Does: "Removes the instance, but not the history of its operations."},
	})
}

// Suspension returns the process that removes an instance's runtime but not the instance.
func Suspension(options Options) process.Process[environment.Data] {
	return removing(environment.KindSuspend, options, process.Task[environment.Data]{
		Step: suspendInstance(options.Instances), Notes: process.Notes{Does: "Records that the instance has no runtime."},
	})
}

// Cleanup returns the process that repeats the steps of a leftover. Its operations start with the stages from FinishedStages
// marked as finished, so that these stages do not run.
func Cleanup(options Options) process.Process[environment.Data] {
	options.LeftOver = nil // the removal has already counted the leftover

	return removing(environment.KindCleanup, options, process.Task[environment.Data]{
		Step:  removeLeftover(options.Instances),
		Notes: process.Notes{Does: "Removes the leftover, or records which of its steps are still not completed."},
	})
}

// removing returns a process that removes a runtime and ends with the given task. Each step is a separate stage, so that
// waiting in one step does not repeat the others.
func removing(kind string, options Options, last process.Task[environment.Data]) process.Process[environment.Data] {
	stages := []process.Stage[environment.Data]{stage(process.Task[environment.Data]{
		Step: start(options.Provisionings), Notes: process.Notes{Does: "Reads which runtime was ordered for the instance."},
	})}

	if kind != environment.KindCleanup { // the runtime of a leftover is gone or about to be
		stages = append(stages, stage(process.Task[environment.Data]{
			Step: cleanBTP{runtimes: options.Runtimes}, Skippable: true,
			When: process.Condition[environment.Data]{
				Text: "a suspension, or the User-Agent of the deletion is accountcleanup-job", Holds: hasServices(kind),
			},
			Notes: process.Notes{
				Does: "Removes the service instances and bindings in the runtime.", System: "runtime", Limit: cleanupWindow, Optional: true,
			},
		}))
	}

	stages = slices.Concat(stages, registrationStages(options), kymaStages(options), reconcilerStages(options), runtimeStages(options))

	if kind == environment.KindCleanup {
		stages = unlessUsedStages(stages, options)
	}

	if kind == environment.KindDeprovision { // a suspended instance keeps its account
		stages = append(stages, stage(process.Task[environment.Data]{
			Step: releaseSubscription(options.Accounts), Skippable: true,
			When: process.Condition[environment.Data]{
				Text: "not own_cluster, APP_ACCOUNT_POOL_RULES_FILE is set", Off: options.Accounts == nil, Holds: hasProvider,
			},
			Notes: process.Notes{
				Does: "Returns the cloud account of the instance to the account pool.", System: "Gardener", Limit: releaseWindow, Optional: true,
			},
		}))
	}

	return process.Process[environment.Data]{Kind: kind, Limit: options.Limit, Stages: append(stages, stage(last))}
}
