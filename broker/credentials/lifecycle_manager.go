package credentials

import (
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/secret"
)

// ControlPlane changes Secrets in the control plane.
type ControlPlane interface {
	// RenewSecret replaces the kubeconfig in a Secret. If the Secret does not exist, the error is of kind failure.NotFound.
	RenewSecret(ctx context.Context, ref lifecyclemanager.Ref, kubeconfig secret.String) error
	ApplySecret(ctx context.Context, objects lifecyclemanager.Objects, kubeconfig secret.String) error
}

// LifecycleManager is a Holder whose kubeconfigs are in Secrets in the control plane. A Secret can be updated while an operation
// of the instance runs, because an update cannot recreate a Secret that the operation has deleted. Operations of the instance
// wait only while Replace creates a missing Secret.
type LifecycleManager struct {
	Client ControlPlane
	// Kyma decides which objects a runtime has in the control plane.
	Kyma interface {
		Objects(ctx context.Context, instance environment.Instance) (lifecyclemanager.Objects, error)
	}
}

// Title implements Holder.
func (LifecycleManager) Title() string { return "Lifecycle Manager" }

// Limit implements Holder.
func (LifecycleManager) Limit() time.Duration { return 0 }

// Replace writes the kubeconfig to the Secret, and creates a missing Secret.
func (l LifecycleManager) Replace(ctx context.Context, object environment.OutsideObject, instance environment.Instance, kubeconfig secret.String,
	restore func(context.Context) error,
) error {
	ref, err := lifecyclemanager.ParseRef(object.Key)
	if err != nil {
		return err //nolint:wrapcheck // carries a failure.Kind
	}

	if err := l.Client.RenewSecret(ctx, ref, kubeconfig); !failure.Is(err, failure.NotFound) {
		return err //nolint:wrapcheck // names the control plane
	}

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
