//go:build garden

package e2e

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// createExternalService creates a service instance of the service catalog in the cluster of a scenario.
func createExternalService(ctx context.Context, s *scenario) error {
	cluster, err := s.cluster(ctx)
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
		object.SetFinalizers([]string{catalogFinalizer})

		_, err := cluster.Resource(catalogResource(each.resource)).Namespace(each.namespace).Create(ctx, object, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating a %s: %w", each.kind, err)
		}
	}

	return nil
}

// releaseExternalService simulates the service catalog: it waits until the service instance is deleted, and then removes its
// finalizers.
func releaseExternalService(ctx context.Context, s *scenario, cluster dynamic.Interface) {
	services := cluster.Resource(catalogResource("serviceinstances")).Namespace("default")

	for pause(ctx) == nil {
		service, err := services.Get(ctx, "own", metav1.GetOptions{})
		if err != nil || service.GetDeletionTimestamp() == nil {
			continue // the service instance does not exist yet, or is not being deleted
		}

		service.SetFinalizers(nil)

		if _, err := services.Update(ctx, service, metav1.UpdateOptions{}); err == nil {
			s.released.Store(true)

			return
		}
	}
}
