package e2e

import (
	"context"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/environment-broker/environment-broker/test/harness"
)

func (c clusters) dynamicClient(runtimeID string) dynamic.Interface {
	c.Helper()

	config := harness.RuntimeConfig(c, []byte(c.status(runtimeID, "kubeconfig").RuntimeConfiguration.Kubeconfig))
	config.QPS = -1

	client, err := dynamic.NewForConfig(config)
	if err != nil {
		c.Fatal(err)
	}

	return client
}

// catalogFinalizer is the finalizer that the service catalog sets on its objects.
const catalogFinalizer = "kubernetes-incubator/service-catalog"

// kymaFinalizer is a finalizer that blocks the removal of Kyma, so that the test can check the runtime during the removal.
const kymaFinalizer = "example.com/keeper"

// catalogResource returns a resource of the service catalog's API.
func catalogResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "servicecatalog.k8s.io", Version: "v1beta1", Resource: name}
}

// serviceCatalog simulates the service catalog's controller in a runtime. Unbinding fails until unbinds is true.
type serviceCatalog struct {
	clusters

	runtime dynamic.Interface

	// mutex guards the following fields. The controller holds it while it reconciles.
	mutex    sync.Mutex
	unbinds  bool
	released []string
}

// startServiceCatalog creates an external service with a binding in the runtime, and runs the controller until the test ends.
func (c clusters) startServiceCatalog(runtimeID string) *serviceCatalog {
	c.Helper()

	catalog := &serviceCatalog{clusters: c, runtime: c.dynamicClient(runtimeID)}
	catalog.create("clusterservicebrokers", "", "ClusterServiceBroker", "manager", map[string]any{"url": "https://service-manager.example.com"})
	catalog.create("clusterserviceclasses", "", "ClusterServiceClass", "postgres", map[string]any{"clusterServiceBrokerName": "manager"})
	catalog.create("serviceinstances", "default", "ServiceInstance", "database",
		map[string]any{"clusterServiceClassRef": map[string]any{"name": "postgres"}})
	catalog.create("servicebindings", "default", "ServiceBinding", "credentials", map[string]any{"instanceRef": map[string]any{"name": "database"}})
	catalog.setKymaFinalizers([]string{kymaFinalizer})

	harness.Run(c.T, func(ctx context.Context) error {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()

		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
				catalog.reconcile(ctx)
			}
		}
	})

	return catalog
}

func (s *serviceCatalog) create(resource, namespace, kind, name string, spec map[string]any) {
	s.Helper()

	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "servicecatalog.k8s.io/v1beta1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	object.SetFinalizers([]string{catalogFinalizer})

	if _, err := s.runtime.Resource(catalogResource(resource)).Namespace(namespace).Create(s.Context(), object, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// setKymaFinalizers sets the finalizers of one of Kyma's objects.
func (s *serviceCatalog) setKymaFinalizers(finalizers []string) {
	s.Helper()

	objects := s.runtime.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("kyma-system")

	essentials, err := objects.Get(s.Context(), "cluster-essentials", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}

	essentials.SetFinalizers(finalizers)

	if _, err := objects.Update(s.Context(), essentials, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// reconcile removes the finalizers of deleted bindings. Once no binding exists, it also removes the finalizers of deleted
// instances. It does nothing if the runtime does not respond.
func (s *serviceCatalog) reconcile(ctx context.Context) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	bindings := s.list(ctx, "servicebindings")
	for _, binding := range bindings {
		if binding.GetDeletionTimestamp() == nil {
			continue
		}

		if s.unbinds {
			s.release(ctx, "servicebindings", binding)
		} else {
			s.reportFailure(ctx, binding)
		}
	}

	for _, instance := range s.list(ctx, "serviceinstances") {
		if instance.GetDeletionTimestamp() != nil && len(bindings) == 0 {
			s.release(ctx, "serviceinstances", instance)
		}
	}
}

func (s *serviceCatalog) list(ctx context.Context, resource string) []unstructured.Unstructured {
	list, err := s.runtime.Resource(catalogResource(resource)).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}

	return list.Items
}

// release removes the finalizer of a deleted object, so that the object disappears.
func (s *serviceCatalog) release(ctx context.Context, resource string, object unstructured.Unstructured) {
	object.SetFinalizers(nil)

	if _, err := s.runtime.Resource(catalogResource(resource)).Namespace(object.GetNamespace()).Update(ctx, &object, metav1.UpdateOptions{}); err == nil {
		s.released = append(s.released, object.GetName())
	}
}

// reportFailure sets the status of a binding to report that unbinding fails.
func (s *serviceCatalog) reportFailure(ctx context.Context, binding unstructured.Unstructured) {
	binding.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "Unknown", "reason": "UnbindCallFailed", "message": "the broker is busy",
	}}}

	_, err := s.runtime.Resource(catalogResource("servicebindings")).Namespace(binding.GetNamespace()).Update(ctx, &binding, metav1.UpdateOptions{})
	if err != nil && ctx.Err() == nil {
		s.Logf("the catalog cannot update the binding: %v", err)
	}
}

// checkRemoval checks the removal of the runtime. The operation must report the objects that block the removal, and must remove
// the services before Kyma.
func (s *serviceCatalog) checkRemoval(removalID string) {
	s.Helper()

	s.waitForMessage(removalID, "remaining: 1 of its services and 1 of their bindings; the first is ServiceBinding default/credentials, "+
		"which reports UnbindCallFailed: the broker is busy")

	s.mutex.Lock()
	s.unbinds = true
	s.mutex.Unlock()

	s.waitForMessage(removalID, "waiting until ConfigMap kyma-system/cluster-essentials is gone: it has finalizers "+kymaFinalizer)

	s.mutex.Lock()
	defer s.mutex.Unlock()

	if diff := cmp.Diff([]string{"credentials", "database"}, s.released); diff != "" {
		s.Errorf("services released before Kyma is removed, -want +got:\n%s", diff)
	}

	brokers, err := s.runtime.Resource(catalogResource("clusterservicebrokers")).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}

	if len(brokers.Items) != 1 || len(brokers.Items[0].GetFinalizers()) > 0 {
		s.Errorf("the service broker is removed before Kyma, or blocked: %v", brokers.Items)
	}

	s.setKymaFinalizers(nil)
	s.wantSucceeded(removalID)
}
