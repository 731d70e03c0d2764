//go:build garden

package e2e

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// createServices creates an external service in the cluster of a scenario.
func createServices(ctx context.Context, w *scenario) error {
	cluster, err := w.cluster(ctx)
	if err != nil {
		return err
	}

	for _, each := range []struct {
		kind, resource, namespace string
		spec                      map[string]any
	}{
		{"ClusterServiceBroker", "clusterservicebrokers", "", map[string]any{"url": "https://service-manager.example.com"}},
		{"ClusterServiceClass", "clusterserviceclasses", "", map[string]any{"clusterServiceBrokerName": "own"}},
		{"ServiceInstance", "serviceinstances", "default", map[string]any{"clusterServiceClassRef": map[string]any{"name": "own"}}},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "servicecatalog.k8s.io/v1beta1", "kind": each.kind, "metadata": map[string]any{"name": "own"}, "spec": each.spec,
		}}
		object.SetFinalizers([]string{finalizer})

		_, err := cluster.Resource(ofCatalog(each.resource)).Namespace(each.namespace).Create(ctx, object, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a %s: %w", each.kind, err)
		}
	}

	return nil
}

// release simulates the service catalog: it releases the service after its deletion.
func release(ctx context.Context, w *scenario, cluster dynamic.Interface) {
	services := cluster.Resource(ofCatalog("serviceinstances")).Namespace("default")

	for rest(ctx) == nil {
		service, err := services.Get(ctx, "own", metav1.GetOptions{})
		if err != nil || service.GetDeletionTimestamp() == nil {
			continue // there is none yet, or it stays
		}

		service.SetFinalizers(nil)

		if _, err := services.Update(ctx, service, metav1.UpdateOptions{}); err == nil {
			w.released.Store(true)

			return
		}
	}
}
