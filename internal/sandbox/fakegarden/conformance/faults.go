package conformance

import (
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// Faults has the creation of a runtime fail, lets it be tried again, and sees it succeed.
func Faults(t *testing.T, g Garden) {
	ctx := t.Context()
	const name = "faulty"
	g.orderFault(ctx, t, gardenlet.FaultsConfigMap, name, string(gardenlet.FaultFailOnce))

	g.apply(ctx, t, Shoot(g.Namespace, name))
	failed := g.await(ctx, t, name, "its creation failed", unobserved, func(shoot *gardencorev1beta1.Shoot) bool {
		return shoot.Status.LastOperation != nil && shoot.Status.LastOperation.State == gardencorev1beta1.LastOperationStateFailed
	})
	if len(failed.Status.LastErrors) == 0 {
		t.Errorf("a failed creation gives no reason")
	}

	before := failed.DeepCopy()
	metav1.SetMetaDataAnnotation(&failed.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.ShootOperationRetry)
	if err := g.Client.Patch(ctx, failed, client.MergeFrom(before)); err != nil {
		t.Fatalf("ask for a retry: %v", err)
	}
	recovered := g.await(ctx, t, name, "its second creation succeeded", unobserved, succeeded(gardencorev1beta1.LastOperationTypeCreate))
	if len(recovered.Status.LastErrors) > 0 {
		t.Errorf("a creation that succeeded still shows errors: %+v", recovered.Status.LastErrors)
	}
	g.remove(ctx, t, name, unobserved)
}
