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
	"k8s.io/client-go/tools/clientcmd"

	"github.com/environment-broker/environment-broker/test/harness"
)

// custom returns a dynamic client of the runtime.
func (c clusters) custom(runtimeID string) dynamic.Interface {
	c.Helper()

	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(c.status(runtimeID, "kubeconfig").RuntimeConfiguration.Kubeconfig))
	if err != nil {
		c.Fatal(err)
	}

	config.QPS = -1

	inside, err := dynamic.NewForConfig(config)
	if err != nil {
		c.Fatal(err)
	}

	return inside
}

// finalizer is the finalizer of the service catalog.
const finalizer = "kubernetes-incubator/service-catalog"

// keeper is a finalizer that blocks the removal of Kyma until the test has checked the runtime.
const keeper = "example.com/keeper"

// ofCatalog returns a resource of the service catalog.
func ofCatalog(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "servicecatalog.k8s.io", Version: "v1beta1", Resource: name}
}

// serviceCatalog simulates the service catalog's controller in a runtime. It refuses to unbind until it is willing.
type serviceCatalog struct {
	clusters

	inside dynamic.Interface

	// mutex is held while the catalog works.
	mutex   sync.Mutex
	willing bool
	gone    []string
}

// ordersServices creates an external service in the runtime, with a binding.
func (c clusters) ordersServices(runtimeID string) *serviceCatalog {
	c.Helper()

	catalog := &serviceCatalog{clusters: c, inside: c.custom(runtimeID)}
	catalog.make("clusterservicebrokers", "", "ClusterServiceBroker", "manager", map[string]any{"url": "https://service-manager.example.com"})
	catalog.make("clusterserviceclasses", "", "ClusterServiceClass", "postgres", map[string]any{"clusterServiceBrokerName": "manager"})
	catalog.make("serviceinstances", "default", "ServiceInstance", "database",
		map[string]any{"clusterServiceClassRef": map[string]any{"name": "postgres"}})
	catalog.make("servicebindings", "default", "ServiceBinding", "credentials", map[string]any{"instanceRef": map[string]any{"name": "database"}})
	catalog.keepEssentials([]string{keeper})

	harness.Run(c.T, func(ctx context.Context) error {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()

		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
				catalog.work(ctx)
			}
		}
	})

	return catalog
}

func (s *serviceCatalog) make(resource, namespace, kind, name string, spec map[string]any) {
	s.Helper()

	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "servicecatalog.k8s.io/v1beta1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	object.SetFinalizers([]string{finalizer})

	if _, err := s.inside.Resource(ofCatalog(resource)).Namespace(namespace).Create(s.Context(), object, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// keepEssentials sets the finalizers of an object of Kyma.
func (s *serviceCatalog) keepEssentials(finalizers []string) {
	s.Helper()

	objects := s.inside.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("kyma-system")

	essentials, err := objects.Get(s.Context(), "cluster-essentials", metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}

	essentials.SetFinalizers(finalizers)

	if _, err := objects.Update(s.Context(), essentials, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// work releases all objects that can be released now. It does nothing if the runtime does not respond.
func (s *serviceCatalog) work(ctx context.Context) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	bindings := s.list(ctx, "servicebindings")
	for _, binding := range bindings {
		if binding.GetDeletionTimestamp() == nil {
			continue
		}

		if s.willing {
			s.release(ctx, "servicebindings", binding)
		} else {
			s.complain(ctx, binding)
		}
	}

	for _, instance := range s.list(ctx, "serviceinstances") {
		if instance.GetDeletionTimestamp() != nil && len(bindings) == 0 {
			s.release(ctx, "serviceinstances", instance)
		}
	}
}

func (s *serviceCatalog) list(ctx context.Context, resource string) []unstructured.Unstructured {
	list, err := s.inside.Resource(ofCatalog(resource)).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}

	return list.Items
}

// release removes the finalizer of an object, which ends its deletion.
func (s *serviceCatalog) release(ctx context.Context, resource string, object unstructured.Unstructured) {
	object.SetFinalizers(nil)

	if _, err := s.inside.Resource(ofCatalog(resource)).Namespace(object.GetNamespace()).Update(ctx, &object, metav1.UpdateOptions{}); err == nil {
		s.gone = append(s.gone, object.GetName())
	}
}

// complain records in the binding's status why the catalog does not remove it.
func (s *serviceCatalog) complain(ctx context.Context, binding unstructured.Unstructured) {
	binding.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "Unknown", "reason": "UnbindCallFailed", "message": "the broker is busy",
	}}}

	_, err := s.inside.Resource(ofCatalog("servicebindings")).Namespace(binding.GetNamespace()).Update(ctx, &binding, metav1.UpdateOptions{})
	if err != nil && ctx.Err() == nil {
		s.Logf("the catalog cannot update the binding: %v", err)
	}
}

// wantRelease follows the removal of the runtime, which must name its blockers, and continue in order once they are gone.
func (s *serviceCatalog) wantRelease(removalID string) {
	s.Helper()

	s.waitForMessage(removalID, "remaining: 1 of its services and 1 of their bindings, first of all ServiceBinding default/credentials, "+
		"which says UnbindCallFailed: the broker is busy")

	s.mutex.Lock()
	s.willing = true
	s.mutex.Unlock()

	s.waitForMessage(removalID, "waiting until ConfigMap kyma-system/cluster-essentials is gone: it has finalizers "+keeper)

	s.mutex.Lock()
	defer s.mutex.Unlock()

	if diff := cmp.Diff([]string{"credentials", "database"}, s.gone); diff != "" {
		s.Errorf("services released before Kyma is removed, -want +got:\n%s", diff)
	}

	brokers, err := s.inside.Resource(ofCatalog("clusterservicebrokers")).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}

	if len(brokers.Items) != 1 || len(brokers.Items[0].GetFinalizers()) > 0 {
		s.Errorf("the service broker is removed before Kyma, or blocked: %v", brokers.Items)
	}

	s.keepEssentials(nil)
	s.wantSucceeded(removalID)
}
