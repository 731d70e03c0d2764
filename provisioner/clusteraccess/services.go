package clusteraccess

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const instances = "serviceinstances"

// resource is one of the service catalog of a cluster.
func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "servicecatalog.k8s.io", Version: "v1beta1", Resource: name}
}

// RemoveServices implements deprovisioning.Clusters. A cluster without a service catalog has no services.
func (a Access) RemoveServices(ctx context.Context, shootName, brokers string) (left int, err error) {
	cluster, disconnect, err := a.Connect(ctx, shootName)
	if err != nil {
		return 0, err
	}
	defer disconnect()

	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return 0, failure.Wrap(failure.Internal, err, "a client of the cluster %q cannot be made", shootName)
	}

	left, err = services{client}.remove(ctx, brokers)

	return left, explain(err, "the services of the cluster %q could not be removed", shootName)
}

// services are those of one cluster.
type services struct {
	client dynamic.Interface
}

// remove asks for the removal of the services that come from these brokers, and counts those that are there still.
func (s services) remove(ctx context.Context, brokers string) (left int, err error) {
	from, err := s.names(ctx, "clusterservicebrokers", func(broker unstructured.Unstructured) bool {
		return strings.HasPrefix(text(broker, "spec", "url"), brokers)
	})
	if err != nil || len(from) == 0 {
		return 0, err
	}

	classes, err := s.names(ctx, "clusterserviceclasses", func(class unstructured.Unstructured) bool {
		return from[text(class, "spec", "clusterServiceBrokerName")]
	})
	if err != nil || len(classes) == 0 {
		return 0, err
	}

	found, err := s.list(ctx, instances)
	if err != nil {
		return 0, err
	}

	for _, instance := range found {
		if !classes[text(instance, "spec", "clusterServiceClassRef", "name")] {
			continue
		}

		left++

		if instance.GetDeletionTimestamp() != nil {
			continue
		}

		err := s.client.Resource(resource(instances)).Namespace(instance.GetNamespace()).
			Delete(ctx, instance.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return left, err
		}
	}

	return left, nil
}

// names are those of the objects that are wanted.
func (s services) names(ctx context.Context, of string, wanted func(unstructured.Unstructured) bool) (map[string]bool, error) {
	objects, err := s.list(ctx, of)
	names := make(map[string]bool, len(objects))

	for _, object := range objects {
		if wanted(object) {
			names[object.GetName()] = true
		}
	}

	return names, err
}

// list returns the objects of all namespaces, none where the resource is unknown.
func (s services) list(ctx context.Context, name string) ([]unstructured.Unstructured, error) {
	list, err := s.client.Resource(resource(name)).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	return list.Items, nil
}

func text(object unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(object.Object, path...) // another type is no name

	return found
}
