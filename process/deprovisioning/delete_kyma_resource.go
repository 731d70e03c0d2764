package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// kymaInterval is the pause between two attempts to remove a Lifecycle Manager object.
const kymaInterval = 10 * time.Second

// LifecycleManager deletes the objects of runtimes in the control plane. Both calls are idempotent.
type LifecycleManager interface {
	// Delete deletes an object. It succeeds if the object does not exist.
	Delete(ctx context.Context, ref lifecyclemanager.Ref) error
	// Status returns the status of the Kyma resource, or an error of kind failure.NotFound if the resource does not exist.
	Status(ctx context.Context, kyma lifecyclemanager.Ref) (lifecyclemanager.Status, error)
}

// kymaObject is one of the instance's objects in the control plane.
type kymaObject struct {
	// client is nil if Lifecycle Manager is turned off. The objects then stay and are recorded as left over.
	client  LifecycleManager
	objects Objects
	kind    string
}

// removal records that the object is being removed and calls remove. It does nothing if there is no object. After an error, the
// step is retried for at most cleanupWindow; then the object is recorded as left over.
func (k kymaObject) removal(ctx context.Context, operation Operation, log logrus.FieldLogger,
	remove func(object environment.OutsideObject, ref lifecyclemanager.Ref) error,
) (Operation, time.Duration, error) {
	object, err := k.objects.FindObject(ctx, operation.InstanceID, environment.SystemLifecycleManager, k.kind)
	if err != nil || object.State == "" {
		return operation, 0, err
	}

	if object.State != environment.OutsideRemoving {
		object.State = environment.OutsideRemoving
		if err := k.objects.SetObject(ctx, operation.Record, object); err != nil {
			return operation, 0, err
		}
	}

	ref, err := lifecyclemanager.ParseRef(object.Key)
	if err != nil {
		return operation, 0, err
	}

	if k.client == nil {
		err = failure.New(failure.Permanent, "Lifecycle Manager is turned off: an operator must set APP_LIFECYCLE_MANAGER_ENABLED").
			WithReason(failure.ReasonInternal, failure.ComponentBroker)
	} else {
		err = remove(object, ref)
	}

	if err != nil {
		return cleanup{objects: k.objects, object: object, cause: err, interval: kymaInterval, off: k.client == nil}.retry(ctx, operation, log)
	}

	return operation, 0, nil
}

// deleteKyma deletes the Kyma resource of the runtime. Lifecycle Manager then removes its modules from the runtime.
type deleteKyma struct{ kymaObject }

// Name implements process.Step.
func (deleteKyma) Name() string { return "Delete_Kyma_Resource" }

// Run implements process.Step.
func (s deleteKyma) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	return s.removal(ctx, operation, log, func(_ environment.OutsideObject, ref lifecyclemanager.Ref) error {
		return s.client.Delete(ctx, ref)
	})
}

// checkKymaDeleted waits until Lifecycle Manager has removed the Kyma resource.
type checkKymaDeleted struct{ kymaObject }

// Name implements process.Step.
func (checkKymaDeleted) Name() string { return "Check_Kyma_Resource_Deleted" }

// Run implements process.Step.
func (s checkKymaDeleted) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	object, err := s.objects.FindObject(ctx, operation.InstanceID, environment.SystemLifecycleManager, s.kind)
	if err != nil || object.State == environment.OutsideLeftOver { // the deletion was abandoned
		return operation, 0, err
	}

	return s.removal(ctx, operation, log, func(object environment.OutsideObject, ref lifecyclemanager.Ref) error {
		status, err := s.client.Status(ctx, ref)

		switch {
		case failure.Is(err, failure.NotFound):
			return s.objects.RemoveObject(ctx, operation.Record, object)
		case err != nil:
			return err
		default:
			return failure.New(failure.Transient, "Lifecycle Manager has not removed Kyma from the runtime yet").
				WithReason(failure.ReasonInternal, failure.ComponentLifecycleManager).WithDetail(status.Describe())
		}
	})
}

// deleteKubeconfig deletes the Secret with the kubeconfig of the runtime. It runs after the runtime was removed, because
// Lifecycle Manager needs the kubeconfig to remove its modules. Once the Secret is gone, Lifecycle Manager no longer waits for
// the modules of a Kyma resource that is being deleted.
type deleteKubeconfig struct{ kymaObject }

// Name implements process.Step.
func (deleteKubeconfig) Name() string { return "Delete_Kubeconfig" }

// Run implements process.Step.
func (s deleteKubeconfig) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	return s.removal(ctx, operation, log, func(object environment.OutsideObject, ref lifecyclemanager.Ref) error {
		// A restoration of the Secret does nothing if it starts after the object's record was removed. If it started earlier,
		// RenewingUntil is the time until which it may still be running.
		present, err := s.objects.FindObject(ctx, operation.InstanceID, environment.SystemLifecycleManager, s.kind)
		if err != nil {
			return err
		}

		if present.Credential.RenewingUntil.After(operation.Now()) {
			return failure.New(failure.Transient, "the Secret with the kubeconfig of the runtime is being restored").
				WithReason(failure.ReasonInternal, failure.ComponentBroker)
		}

		if err := s.client.Delete(ctx, ref); err != nil {
			return err
		}

		return s.objects.RemoveObject(ctx, operation.Record, object)
	})
}
