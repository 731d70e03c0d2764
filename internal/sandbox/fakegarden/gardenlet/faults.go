package gardenlet

import (
	"context"
	"encoding/json"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Fault makes the creation or update of a Shoot fail or stall. Faults do not affect deletions.
//
// To inject a fault, set a key in the ConfigMap named FaultsConfigMap in the project's namespace: the key is the name of a Shoot,
// or FaultDefault for all other Shoots, and the value is a Fault. The gardenlet reads the ConfigMap whenever it reconciles a
// Shoot.
type Fault string

const (
	// FaultsConfigMap is the name of the ConfigMap that injects faults.
	FaultsConfigMap = "gardenlet-faults"
	// FaultDefault is the key for all Shoots that have no key of their own.
	FaultDefault = "default"

	// FaultFailOnce fails the operation halfway. The gardenlet then sets the Shoot's key to FaultSpent, so that the next attempt
	// succeeds: a retry by annotation, a change of the spec, or a new Shoot with the same name.
	FaultFailOnce Fault = "fail-once"
	// FaultSpent has no effect. It is the value of the Shoot's key after FaultFailOnce has failed an operation.
	FaultSpent Fault = "failed-once"
	// FaultStuck keeps the operation in the Processing state until the fault is removed.
	FaultStuck Fault = "stuck"
	// FaultRateLimit keeps the operation in the Error state, with the code ERR_INFRA_RATE_LIMITS_EXCEEDED, for twice the time that
	// the operation takes without a fault. Then the operation continues.
	FaultRateLimit Fault = "rate-limit"
	// FaultQuota fails every attempt with ERR_INFRA_QUOTA_EXCEEDED.
	FaultQuota Fault = "quota"
)

// fault returns the fault for a Shoot, or an empty Fault if there is none. An unknown value is logged and ignored, because a
// typo must not stop the operations of all Shoots.
func (g *Gardenlet) fault(ctx context.Context, shoot string) (Fault, error) {
	faults := &corev1.ConfigMap{}
	err := g.Client.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: FaultsConfigMap}, faults)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the faults: %w", err)
	}
	value, ok := faults.Data[shoot]
	if !ok {
		value = faults.Data[FaultDefault]
	}
	switch fault := Fault(value); fault {
	case "", FaultFailOnce, FaultSpent, FaultStuck, FaultRateLimit, FaultQuota:
		return fault, nil
	}
	g.Log.WithField("shoot", shoot).WithField("fault", value).Warn("ignoring an unknown fault")
	return "", nil
}

// spendFailure records that FaultFailOnce has made an operation of the Shoot fail. It runs in every reconciliation of a failed
// Shoot, so a crash after the failure was reported cannot make the Shoot fail twice.
func (g *Gardenlet) spendFailure(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	last := shoot.Status.LastOperation
	if last == nil || last.State != gardencorev1beta1.LastOperationStateFailed {
		return nil
	}
	fault, err := g.fault(ctx, shoot.Name)
	if err != nil || fault != FaultFailOnce {
		return err
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{shoot.Name: string(FaultSpent)}})
	if err != nil {
		return fmt.Errorf("encoding the spent fault: %w", err)
	}
	faults := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: FaultsConfigMap}}
	if err := g.Client.Patch(ctx, faults, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("recording the spent fault: %w", err)
	}
	return nil
}
