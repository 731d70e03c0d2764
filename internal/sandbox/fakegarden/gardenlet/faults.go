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

// Fault is a way in which the creation or a change of a Shoot goes wrong. Deletions are spared.
//
// Faults are ordered by the ConfigMap FaultsConfigMap in the namespace of the project: its keys are names of Shoots, or FaultDefault
// for all others, its values are Faults. The gardenlet reads it whenever it looks at an operation that runs.
type Fault string

const (
	// FaultsConfigMap is the name of the ConfigMap that orders faults.
	FaultsConfigMap = "gardenlet-faults"
	// FaultDefault is the key of the fault of all Shoots that have no key of their own.
	FaultDefault = "default"

	// FaultFailOnce ends the operation as Failed halfway. The gardenlet then writes FaultSpent under the name of the Shoot, so that
	// the next attempt succeeds: a retry by annotation, a change of the spec, or a Shoot created anew under that name.
	FaultFailOnce Fault = "fail-once"
	// FaultSpent is no fault any more: FaultFailOnce has done its work.
	FaultSpent Fault = "failed-once"
	// FaultStuck keeps the operation in Processing, until the fault is taken back.
	FaultStuck Fault = "stuck"
	// FaultRateLimit puts the operation into Error with ERR_INFRA_RATE_LIMITS_EXCEEDED for twice the time that it takes; then it goes on.
	FaultRateLimit Fault = "rate-limit"
	// FaultQuota ends every attempt as Failed with ERR_INFRA_QUOTA_EXCEEDED.
	FaultQuota Fault = "quota"
)

func (f Fault) known() bool {
	switch f {
	case "", FaultFailOnce, FaultSpent, FaultStuck, FaultRateLimit, FaultQuota:
		return true
	}
	return false
}

// fault returns what is ordered for a Shoot.
func (g *Gardenlet) fault(ctx context.Context, shoot string) (Fault, error) {
	orders := &corev1.ConfigMap{}
	err := g.client.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: FaultsConfigMap}, orders)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the ordered faults: %w", err)
	}
	order, ok := orders.Data[shoot]
	if !ok {
		order = orders.Data[FaultDefault]
	}
	if fault := Fault(order); fault.known() {
		return fault, nil
	}
	g.log.WithField("shoot", shoot).WithField("fault", order).Warn("the ordered fault is not known and is ignored")
	return "", nil
}

// spendFailure notes that FaultFailOnce has struck a Shoot. It is called after the status was written and again whenever the Shoot
// is looked at, so that no crash in between makes the Shoot fail twice or never.
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
		return fmt.Errorf("encode the spent fault: %w", err)
	}
	orders := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: FaultsConfigMap}}
	if err := g.client.Patch(ctx, orders, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("note the spent fault: %w", err)
	}
	return nil
}
