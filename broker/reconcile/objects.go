package reconcile

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/clients/edp"
	"github.com/environment-broker/environment-broker/internal/clients/lifecyclemanager"
	"github.com/environment-broker/environment-broker/internal/clients/reconciler"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// Systems are the systems that are turned on and in which lost instances may have objects. AvS is missing: it assigned the IDs of
// the evaluations, and they are lost.
type Systems struct {
	EDP, Reconciler bool
	// Kyma decides which objects a runtime has in the control plane. It is nil if Lifecycle Manager is turned off.
	Kyma interface {
		Objects(ctx context.Context, instance environment.Instance) (lifecyclemanager.Objects, error)
	}
}

// objectsOf returns records of the objects that a lost instance may have in the systems, so that a deletion of the instance removes
// them. Objects that do not exist are no obstacle for a deletion. Errors carry a failure.Kind.
func (s Systems) objectsOf(ctx context.Context, instance environment.Instance) ([]environment.OutsideObject, error) {
	var objects []environment.OutsideObject

	if s.EDP && instance.InEDP() {
		objects = append(objects, edp.Record(instance.ID, instance.SubAccountID, environment.OutsideCreating))
	}

	// A created cluster would get a new kubeconfig, and with it the Kyma of the lost instance, because the configuration that was sent
	// last is lost, too. That could revert upgrades, which change no data of the runtime.
	if s.Reconciler && instance.InReconciler() {
		objects = append(objects, reconciler.Record(instance.ID, instance.RuntimeID, environment.OutsideCreating))
	}

	if s.Kyma == nil || !instance.InLifecycleManager() {
		return objects, nil
	}

	// A created kubeconfig is renewed immediately. The renewal also creates a missing Secret.
	found, err := s.Kyma.Objects(ctx, instance)

	return append(objects, found.Records(instance.ID, environment.OutsideCreated)...), err //nolint:wrapcheck // carries a failure.Kind
}
