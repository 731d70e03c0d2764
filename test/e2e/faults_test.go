package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakegarden/gardenlet"
)

// orderFaults orders what goes wrong with the clusters of a garden, instead of what was ordered before.
func orderFaults(tb testing.TB, api client.Client, orders map[string]string) {
	tb.Helper()

	order := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-local", Name: gardenlet.FaultsConfigMap}}

	err := client.IgnoreNotFound(api.Delete(context.Background(), order.DeepCopy()))
	if err == nil && len(orders) > 0 {
		order.Data = orders
		err = api.Create(context.Background(), order)
	}

	if err != nil {
		tb.Fatal(err)
	}
}

// stuck keeps every cluster from being made or changed to its end, until other faults are ordered: so that what is under way is still
// under way when a test has looked at it.
func stuck() map[string]string {
	return map[string]string{gardenlet.FaultDefault: string(gardenlet.FaultStuck)}
}
