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
)

// custom is a client of the runtime itself for objects of any kind.
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

// finalizer is what the service catalog puts on its objects.
const finalizer = "kubernetes-incubator/service-catalog"

// keeper is what keeps an object of Kyma, and with it the runtime, until what is looked for in the runtime has been seen.
const keeper = "example.com/keeper"

// ofCatalog is a resource of the service catalog.
func ofCatalog(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "servicecatalog.k8s.io", Version: "v1beta1", Resource: name}
}

// serviceCatalog plays the service catalog's controller in a runtime. Its broker does not unbind until it is told to.
type serviceCatalog struct {
	clusters

	inside dynamic.Interface

	// mutex is held for as long as the catalog is at work.
	mutex   sync.Mutex
	willing bool
	gone    []string
}

// ordersServices has the runtime get a service from outside, which is bound.
func (c clusters) ordersServices(runtimeID string) *serviceCatalog {
	c.Helper()

	catalog := &serviceCatalog{clusters: c, inside: c.custom(runtimeID)}
	catalog.make("clusterservicebrokers", "", "ClusterServiceBroker", "manager", map[string]any{"url": "https://service-manager.example.com"})
	catalog.make("clusterserviceclasses", "", "ClusterServiceClass", "postgres", map[string]any{"clusterServiceBrokerName": "manager"})
	catalog.make("serviceinstances", "default", "ServiceInstance", "database",
		map[string]any{"clusterServiceClassRef": map[string]any{"name": "postgres"}})
	catalog.make("servicebindings", "default", "ServiceBinding", "credentials", map[string]any{"instanceRef": map[string]any{"name": "database"}})
	catalog.keepEssentials([]string{keeper})

	run(c.T, func(ctx context.Context) error {
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

// keepEssentials gives an object of Kyma these finalizers.
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

// work does what is to be done now. Where the runtime does not answer there is nothing.
func (s *serviceCatalog) work(ctx context.Context) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	bindings := s.list(ctx, "servicebindings")
	for _, binding := range bindings {
		if binding.GetDeletionTimestamp() == nil {
			continue
		}

		if s.willing {
			s.letGo(ctx, "servicebindings", binding)
		} else {
			s.complain(ctx, binding)
		}
	}

	for _, instance := range s.list(ctx, "serviceinstances") {
		if instance.GetDeletionTimestamp() != nil && len(bindings) == 0 {
			s.letGo(ctx, "serviceinstances", instance)
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

// letGo ends an object.
func (s *serviceCatalog) letGo(ctx context.Context, resource string, object unstructured.Unstructured) {
	object.SetFinalizers(nil)

	if _, err := s.inside.Resource(ofCatalog(resource)).Namespace(object.GetNamespace()).Update(ctx, &object, metav1.UpdateOptions{}); err == nil {
		s.gone = append(s.gone, object.GetName())
	}
}

// complain tells in the binding why it does not go.
func (s *serviceCatalog) complain(ctx context.Context, binding unstructured.Unstructured) {
	binding.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "Unknown", "reason": "UnbindCallFailed", "message": "the broker is busy",
	}}}

	_, err := s.inside.Resource(ofCatalog("servicebindings")).Namespace(binding.GetNamespace()).Update(ctx, &binding, metav1.UpdateOptions{})
	if err != nil && ctx.Err() == nil {
		s.Logf("the catalog cannot complain: %v", err)
	}
}

// givesBack follows the removal of the runtime: it tells what keeps it, and all goes in its order once nothing does.
func (s *serviceCatalog) givesBack(removalID string) {
	s.Helper()

	s.says(removalID, "remaining: 1 of its services and 1 of their bindings, first of all ServiceBinding default/credentials, "+
		"which says UnbindCallFailed: the broker is busy")

	s.mutex.Lock()
	s.willing = true
	s.mutex.Unlock()

	s.says(removalID, "waiting until ConfigMap kyma-system/cluster-essentials is gone: it has the finalizers "+keeper)

	s.mutex.Lock()
	defer s.mutex.Unlock()

	if diff := cmp.Diff([]string{"credentials", "database"}, s.gone); diff != "" {
		s.Errorf("what the runtime had from outside is gone before Kyma goes, -want +got:\n%s", diff)
	}

	brokers, err := s.inside.Resource(ofCatalog("clusterservicebrokers")).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}

	if len(brokers.Items) != 1 || len(brokers.Items[0].GetFinalizers()) > 0 {
		s.Errorf("nothing keeps the service broker from going before Kyma goes: %v", brokers.Items)
	}

	s.keepEssentials(nil)
	s.succeeded(removalID)
}
