package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/reconciling"
)

const (
	// deregisterInterval is the pause between two requests to remove a cluster.
	deregisterInterval = 15 * time.Second
	// deregisteringInterval is the pause between two requests for the status of the removal. After a failed request, the pause is
	// deregisteringErrorInterval.
	deregisteringInterval      = 30 * time.Second
	deregisteringErrorInterval = time.Minute
	// deregistrationLimit is how long the operation waits for the Reconciler. It then continues with the removal of the runtime.
	deregistrationLimit = 90 * time.Minute
)

const stepDeregister = "Deregister_Cluster"

// Reconciler removes Kyma from runtimes. Both calls are idempotent.
type Reconciler interface {
	Remove(ctx context.Context, runtimeID string) (reconciler.State, error)
	Find(ctx context.Context, runtimeID string, version int64) (reconciler.State, error)
}

// reconcilerStages returns the stages that remove the runtime from the Reconciler.
func reconcilerStages(options Options) []process.Stage[environment.Data] {
	registered := process.Condition[environment.Data]{Text: "registered in the Reconciler"}

	deregister := stage(process.Task[environment.Data]{
		Step: deregisterCluster{client: options.Reconciler, objects: options.Objects}, When: registered, Skippable: true,
		Notes: process.Notes{
			Does:   "Requests the removal of Kyma and of the registration of the runtime.",
			System: reconciling.System, Limit: cleanupWindow, Optional: true,
		},
	})
	check := stage(process.Task[environment.Data]{
		Step: checkDeregistration{client: options.Reconciler, objects: options.Objects}, When: registered, Skippable: true,
		Notes: process.Notes{
			Does: "Waits until the Reconciler has removed Kyma.", System: reconciling.System, Limit: deregistrationLimit, Optional: true,
		},
	})
	check.RetryFrom = deregister.Name

	return []process.Stage[environment.Data]{deregister, check}
}

// deregisterCluster asks the Reconciler to remove Kyma and the registration of the runtime.
type deregisterCluster struct {
	// client is nil if the Reconciler is turned off. A registration then stays and is recorded as left over.
	client  Reconciler
	objects Objects
}

// Name implements process.Step.
func (deregisterCluster) Name() string { return stepDeregister }

// Run implements process.Step.
func (s deregisterCluster) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	object, err := s.objects.FindObject(ctx, operation.InstanceID, environment.SystemReconciler, environment.KindCluster)
	if err != nil || object.State == "" {
		return operation, 0, err
	}

	object.State = environment.OutsideRemoving
	if err := s.objects.SetObject(ctx, operation.Record, object); err != nil {
		return operation, 0, err
	}

	wait, err := reconciling.AwaitRenewal(ctx, s.objects, operation)
	if err != nil {
		return operation, 0, err
	}

	if wait > 0 && operation.Elapsed() < cleanupWindow {
		return process.Await(operation, reconciling.RenewalInProgress, wait, cleanupWindow)
	}

	removing, err := s.remove(ctx, object.Key)
	if err != nil {
		return cleanup{objects: s.objects, object: object, cause: err, interval: deregisterInterval, off: s.client == nil}.retry(ctx, operation, log)
	}

	if removing.Status == reconciler.Deleted {
		return operation, 0, s.objects.RemoveObject(ctx, operation.Record, object)
	}

	operation.Data.ConfigurationVersion = removing.ConfigurationVersion

	return operation, 0, nil
}

func (s deregisterCluster) remove(ctx context.Context, runtimeID string) (reconciler.State, error) {
	if s.client == nil {
		return reconciler.State{}, reconciling.Off()
	}

	return s.client.Remove(ctx, runtimeID) //nolint:wrapcheck // names the Reconciler
}

// checkDeregistration waits until the Reconciler has removed Kyma and the registration. It does nothing unless deregisterCluster has sent
// the request.
type checkDeregistration struct {
	client  Reconciler
	objects Objects
}

// Name implements process.Step.
func (checkDeregistration) Name() string { return "Check_Cluster_Deregistration" }

// Run implements process.Step.
func (s checkDeregistration) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	object, err := s.objects.FindObject(ctx, operation.InstanceID, environment.SystemReconciler, environment.KindCluster)
	if err != nil || object.State != environment.OutsideRemoving {
		return operation, 0, err
	}

	giveUp := func(cause error) (Operation, time.Duration, error) {
		return cleanup{objects: s.objects, object: object, cause: cause, interval: deregisteringInterval, off: true}.retry(ctx, operation, log)
	}

	if s.client == nil {
		return giveUp(reconciling.Off())
	}

	state, err := s.client.Find(ctx, object.Key, operation.Data.ConfigurationVersion)
	if failure.Is(err, failure.NotFound) || err == nil && state.Status == reconciler.Deleted {
		return operation, 0, s.objects.RemoveObject(ctx, operation.Record, object)
	}

	if operation.Elapsed() >= deregistrationLimit {
		return giveUp(failure.Wrap(failure.Permanent, err, "the Reconciler has not removed Kyma within %s", deregistrationLimit).
			WithReason(failure.ReasonTimeout, failure.ComponentReconciler).WithDetail(state.Report()))
	}

	if err != nil {
		return process.RetryOperation(operation, "", err, restclient.RetryAfter(err, deregisteringErrorInterval), deregistrationLimit)
	}

	switch state.Status {
	case reconciler.DeletePending, reconciler.Deleting, reconciler.DeleteRetryable:
		return process.Await(operation, "the Reconciler is removing Kyma: "+state.Report(), deregisteringInterval, deregistrationLimit)
	case reconciler.DeleteError, reconciler.Error:
		return giveUp(reconciling.GaveUp("remove", state))
	default:
		return process.Await(operation, "the Reconciler is removing Kyma: "+state.Report(), deregisteringErrorInterval, deregistrationLimit)
	}
}
