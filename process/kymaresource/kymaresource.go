package kymaresource

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/process"
)

// Operation is the input and the result of the steps.
type Operation = process.Operation[environment.Data]

// Step is a step of a process whose data is environment.Data.
type Step = process.Step[environment.Data]

// System is the name of the control plane in process descriptions.
const System = "control plane"

// Client writes and reads the objects in the control plane. ApplySecret and ApplyKyma are idempotent.
type Client interface {
	ApplySecret(ctx context.Context, objects lifecyclemanager.Objects, kubeconfig secret.String) error
	ApplyKyma(ctx context.Context, objects lifecyclemanager.Objects) error
	// Status returns the status of the Kyma resource, or an error of kind failure.NotFound if the resource does not exist.
	Status(ctx context.Context, kyma lifecyclemanager.Ref) (lifecyclemanager.Status, error)
	// Delete deletes an object. It succeeds if the object does not exist.
	Delete(ctx context.Context, ref lifecyclemanager.Ref) error
}

// Kyma decides which objects a runtime has in the control plane.
type Kyma interface {
	Objects(ctx context.Context, instance environment.Instance) (lifecyclemanager.Objects, error)
}

// Access issues admin kubeconfigs for runtimes.
type Access interface {
	AdminKubeconfig(ctx context.Context, instance environment.Instance) (secret.String, error)
}

// Records records the objects of instances in other systems. SetObject fails if the operation has lost its lease; the step must
// then not call the system. Errors carry a failure.Kind.
type Records interface {
	// FindObject returns the recorded object of the instance, or an object with an empty state if none is recorded.
	FindObject(ctx context.Context, instanceID, system, kind string) (environment.OutsideObject, error)
	SetObject(ctx context.Context, by process.Record, object environment.OutsideObject) error
}

// Options are the dependencies of the steps.
type Options struct {
	// Client is nil if Lifecycle Manager is turned off. The steps then fail.
	Client  Client
	Kyma    Kyma
	Access  Access
	Records Records
	// Instance returns the instance with its request, as it will be after the operation.
	Instance func(ctx context.Context, operation Operation) (environment.Instance, error)
	// Limit is how long an operation waits for Lifecycle Manager before it fails.
	Limit time.Duration
}

// Condition returns the condition under which the steps run: Lifecycle Manager installs the instance's Kyma. The operation's data
// must contain the instance.
func Condition() process.Condition[environment.Data] {
	return process.Condition[environment.Data]{
		Text:  "Lifecycle Manager installs Kyma",
		Holds: func(operation Operation) bool { return operation.Data.Instance.InLifecycleManager() },
	}
}

// action is like process.Action, but its step also respects the retry pause that the control plane requests.
func action(name, description string, do func(ctx context.Context, operation Operation) error) Step {
	done := process.Action(name, description, do)

	return process.StepFunc(name, func(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
		after, wait, err := done.Run(ctx, operation, log)
		if err != nil {
			return retry(operation, err)
		}

		return after, wait, nil
	})
}

// retry repeats the step after the pause that the control plane requests. If it requests none, the stage's retry policy applies.
// The retry window is the same in both cases.
func retry(operation Operation, err error) (Operation, time.Duration, error) {
	pause := restclient.RetryAfter(err, 0)
	if pause == 0 || !failure.Is(err, failure.Transient) {
		return operation, 0, err
	}

	return process.RetryOperation(operation, "", err, pause, process.DefaultRetry().Window)
}

// objects returns the operation's instance and the objects that its runtime has in the control plane.
func (o Options) objects(ctx context.Context, operation Operation) (environment.Instance, lifecyclemanager.Objects, error) {
	if o.Client == nil {
		return environment.Instance{}, lifecyclemanager.Objects{}, failure.New(failure.Permanent,
			"Lifecycle Manager installs Kyma for this instance, but is turned off: an operator must set APP_LIFECYCLE_MANAGER_ENABLED").
			WithReason(failure.ReasonInternal, failure.ComponentBroker)
	}

	instance, err := o.Instance(ctx, operation)
	if err != nil {
		return instance, lifecyclemanager.Objects{}, err
	}

	objects, err := o.Kyma.Objects(ctx, instance)

	return instance, objects, err
}

// recorded calls apply, which creates or changes the object that ref identifies. Before the first call, it records the object,
// and deletes the object of an earlier runtime if no earlier operation has deleted it.
func (o Options) recorded(ctx context.Context, operation Operation, kind string, ref lifecyclemanager.Ref, apply func() error) error {
	object, err := o.Records.FindObject(ctx, operation.InstanceID, environment.SystemLifecycleManager, kind)
	if err != nil {
		return err
	}

	if object.Key != "" {
		if err := o.replaces(ctx, object, ref); err != nil {
			return err
		}
	}

	if object.State != environment.OutsideCreated || object.Key != ref.String() {
		object.Key, object.State = ref.String(), environment.OutsideCreating
		if err := o.Records.SetObject(ctx, operation.Record, object); err != nil {
			return err
		}
	}

	if err := apply(); err != nil || object.State == environment.OutsideCreated {
		return err
	}

	object.State = environment.OutsideCreated

	return o.Records.SetObject(ctx, operation.Record, object)
}

// replaces prepares the replacement of the recorded object by ref. It deletes the object of an earlier runtime. If both objects
// belong to the same runtime but differ in namespace or resource, it returns an error, because Lifecycle Manager would remove
// Kyma along with the recorded object.
func (o Options) replaces(ctx context.Context, recorded environment.OutsideObject, ref lifecyclemanager.Ref) error {
	former, err := lifecyclemanager.ParseRef(recorded.Key)
	if err != nil {
		return err
	}

	switch {
	case former.Name != ref.Name:
		return o.Client.Delete(ctx, former)
	case former.Namespace != ref.Namespace || former.Resource.GroupResource() != ref.Resource.GroupResource():
		return failure.New(failure.Permanent,
			"the runtime already has the object %s, but the Kyma template now names %s: an operator must restore the earlier template",
			former, ref).WithReason(failure.ReasonInternal, failure.ComponentBroker)
	default:
		return nil
	}
}
