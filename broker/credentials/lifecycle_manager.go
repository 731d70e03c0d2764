package credentials

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// ControlPlane changes the objects of runtimes in the control plane.
type ControlPlane interface {
	// RenewSecret replaces the kubeconfig and the labels of a Secret. If the Secret does not exist, the error is of kind
	// failure.NotFound.
	RenewSecret(ctx context.Context, ref lifecyclemanager.Ref, instance environment.Instance, kubeconfig secret.String) error
	// LabelKyma sets the labels of a Kyma resource, if it exists.
	LabelKyma(ctx context.Context, ref lifecyclemanager.Ref, instance environment.Instance) error
	ApplySecret(ctx context.Context, objects lifecyclemanager.Objects, kubeconfig secret.String) error
}

// LifecycleManager is a Holder whose kubeconfigs are in Secrets in the control plane. A Secret can be updated while an operation
// of the instance runs, because an update cannot recreate a Secret that the operation has deleted. Operations of the instance
// wait only while Replace creates a missing Secret.
type LifecycleManager struct {
	Client ControlPlane
	// Recorded returns the recorded objects of an instance in other systems.
	Recorded interface {
		OfInstance(ctx context.Context, instanceID string) ([]environment.OutsideObject, error)
	}
	// Kyma decides which objects a runtime has in the control plane.
	Kyma interface {
		Objects(ctx context.Context, instance environment.Instance) (lifecyclemanager.Objects, error)
	}
}

// Title implements Holder.
func (LifecycleManager) Title() string { return "Lifecycle Manager" }

// Limit implements Holder.
func (LifecycleManager) Limit() time.Duration { return 0 }

// Replace writes the kubeconfig to the Secret, and creates a missing Secret. It also sets the labels of the Kyma resource, because
// an instance can move to another account without an operation.
func (l LifecycleManager) Replace(ctx context.Context, object environment.OutsideObject, instance environment.Instance, kubeconfig secret.String,
	restore func(context.Context) error,
) error {
	ref, err := lifecyclemanager.ParseRef(object.Key)
	if err != nil {
		return err //nolint:wrapcheck // carries a failure.Kind
	}

	err = l.Client.RenewSecret(ctx, ref, instance, kubeconfig)
	if failure.Is(err, failure.NotFound) {
		err = l.create(ctx, ref, instance, kubeconfig, restore)
	}

	if err != nil {
		return err
	}

	return l.label(ctx, instance)
}

// create creates a missing Secret.
func (l LifecycleManager) create(ctx context.Context, ref lifecyclemanager.Ref, instance environment.Instance, kubeconfig secret.String,
	restore func(context.Context) error,
) error {
	objects, err := l.Kyma.Objects(ctx, instance)
	if err != nil {
		return err //nolint:wrapcheck // carries a failure.Kind
	}

	if objects.Secret != ref {
		return failure.New(failure.Permanent, "the Secret %s is missing, and the Kyma template now names another one, %s", ref, objects.Secret)
	}

	ctx, cancel := context.WithTimeout(ctx, restoreTime)
	defer cancel()

	if err := restore(ctx); err != nil {
		return err
	}

	if err := l.Client.ApplySecret(ctx, objects, kubeconfig); err != nil {
		return &uncertainError{err}
	}

	return nil
}

// label sets the labels of the instance's Kyma resource. Resources that an operation creates or removes are left to the operation.
func (l LifecycleManager) label(ctx context.Context, instance environment.Instance) error {
	recorded, err := l.Recorded.OfInstance(ctx, instance.ID)
	if err != nil {
		return err //nolint:wrapcheck // names the table
	}

	for _, object := range recorded {
		if object.System != environment.SystemLifecycleManager || object.Kind != environment.KindKymaResource || object.State != environment.OutsideCreated {
			continue
		}

		ref, err := lifecyclemanager.ParseRef(object.Key)
		if err == nil {
			err = l.Client.LabelKyma(ctx, ref, instance)
		}

		if err != nil {
			return err //nolint:wrapcheck // carries a failure.Kind
		}
	}

	return nil
}
