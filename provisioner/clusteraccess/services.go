package clusteraccess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Resources of the Kubernetes Service Catalog (svc-cat), which clusters with Kyma 1 have.
const (
	serviceInstances = "serviceinstances"
	serviceBindings  = "servicebindings"
	serviceClasses   = "clusterserviceclasses"
	clusterBrokers   = "clusterservicebrokers"
	namespaceBrokers = "servicebrokers"
)

const (
	// maxDeletions limits the deletions per resource in one call. maxDuration limits the duration of a call. The next call
	// continues the work.
	maxDeletions = 100
	maxDuration  = 30 * time.Second
)

// resource adds the API group and version of the Service Catalog to a resource name.
func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "servicecatalog.k8s.io", Version: "v1beta1", Resource: name}
}

// RemoveServices implements processes.Clusters. It removes the services of all cluster-wide brokers (ClusterServiceBrokers) whose
// URL starts with address. Each call does a bounded amount of work, so callers repeat it until left is empty. left describes the
// remaining services to users. It is also empty if the cluster has no service catalog.
func (a Access) RemoveServices(ctx context.Context, shootName, address string) (left string, err error) {
	err = a.withServices(ctx, shootName, func(ctx context.Context, services services) error {
		found, err := services.remove(ctx, address)
		left = found.String()

		return explain(err, "the services of the cluster %q could not be removed", shootName)
	})

	return left, err
}

// ReleaseBrokers implements processes.Clusters. It removes the finalizers of all service brokers, which could block the deletion
// of the cluster. The finalizers protect classes and plans, which are deleted with the cluster anyway.
func (a Access) ReleaseBrokers(ctx context.Context, shootName string) error {
	return a.withServices(ctx, shootName, func(ctx context.Context, services services) error {
		return explain(services.releaseBrokers(ctx), "the finalizers of the service brokers of the cluster %q could not be removed", shootName)
	})
}

// withServices calls the given function with a client for the cluster and a context that ends after maxDuration.
func (a Access) withServices(ctx context.Context, shootName string, work func(context.Context, services) error) error {
	ctx, cancel := context.WithTimeout(ctx, maxDuration)
	defer cancel()

	client, disconnect, err := a.open(ctx, shootName)
	if err != nil {
		return err
	}
	defer disconnect()

	return work(ctx, services{client})
}

// services performs operations on the objects of the service catalog in one cluster.
type services struct {
	client dynamic.Interface
}

// remove deletes the services of brokers whose URL starts with address, and the bindings of these services. It returns the
// services and bindings that existed before the call. The service catalog rejects the deletion of a service that has bindings, so
// remove deletes only the bindings of such a service, and a later call deletes the service. If one deletion fails, remove
// continues with the other objects and returns all errors.
func (s services) remove(ctx context.Context, address string) (left remains, err error) {
	if left.instances, err = s.of(ctx, address); err != nil || len(left.instances) == 0 {
		return left, err
	}

	ours, bound := map[string]bool{}, map[string]bool{}
	for _, instance := range left.instances {
		ours[nameOf(instance)] = true
	}

	found, err := s.list(ctx, serviceBindings)
	if err != nil {
		return left, err
	}

	for _, binding := range found {
		if service := binding.GetNamespace() + "/" + text(binding, "spec", "instanceRef", "name"); ours[service] {
			bound[service] = true
			left.bindings = append(left.bindings, binding)
		}
	}

	free := slices.DeleteFunc(slices.Clone(left.instances), func(instance unstructured.Unstructured) bool { return bound[nameOf(instance)] })

	return left, errors.Join(s.delete(ctx, serviceBindings, left.bindings), s.delete(ctx, serviceInstances, free))
}

// of returns the services of all ClusterServiceBrokers whose URL starts with address. It finds them through their classes: a
// service refers to its class, and the class refers to its broker.
func (s services) of(ctx context.Context, address string) ([]unstructured.Unstructured, error) {
	from, err := s.names(ctx, clusterBrokers, func(broker unstructured.Unstructured) bool {
		return strings.HasPrefix(text(broker, "spec", "url"), address)
	})
	if err != nil || len(from) == 0 {
		return nil, err
	}

	offered, err := s.names(ctx, serviceClasses, func(class unstructured.Unstructured) bool {
		return from[text(class, "spec", "clusterServiceBrokerName")]
	})
	if err != nil || len(offered) == 0 {
		return nil, err
	}

	found, err := s.list(ctx, serviceInstances)

	return slices.DeleteFunc(found, func(instance unstructured.Unstructured) bool {
		return !offered[text(instance, "spec", "clusterServiceClassRef", "name")]
	}), err
}

// delete deletes at most maxDeletions objects. It skips objects that are already being deleted.
func (s services) delete(ctx context.Context, of string, objects []unstructured.Unstructured) error {
	var problems []error

	staying := slices.DeleteFunc(slices.Clone(objects), func(object unstructured.Unstructured) bool {
		return object.GetDeletionTimestamp() != nil
	})

	for _, object := range staying[:min(len(staying), maxDeletions)] {
		err := s.client.Resource(resource(of)).Namespace(object.GetNamespace()).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			problems = append(problems, fmt.Errorf("%s %s: %w", object.GetKind(), nameOf(object), err))
		}
	}

	return errors.Join(problems...)
}

// releaseBrokers removes the finalizers of all service brokers. The service catalog's controller would remove them, but the
// deletion of the cluster may stop the controller first.
func (s services) releaseBrokers(ctx context.Context) error {
	var problems []error

	for _, of := range []string{clusterBrokers, namespaceBrokers} {
		found, err := s.list(ctx, of)
		problems = append(problems, err)

		for _, broker := range found {
			if len(broker.GetFinalizers()) == 0 {
				continue
			}

			broker.SetFinalizers(nil)

			_, err := s.client.Resource(resource(of)).Namespace(broker.GetNamespace()).Update(ctx, &broker, metav1.UpdateOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				problems = append(problems, fmt.Errorf("%s %s: %w", broker.GetKind(), nameOf(broker), err))
			}
		}
	}

	return errors.Join(problems...)
}

// names returns the names of those objects of the given resource for which wanted returns true.
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

// list returns the named resource's objects in all namespaces, or none if the cluster does not serve the resource.
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

// remains are the services and bindings that existed before a call to remove. The call may have deleted some of them.
type remains struct {
	bindings, instances []unstructured.Unstructured
}

// String describes the remaining objects to users: how many there are, and why the first one is not ready. Bindings come first,
// because they must be removed before the services. String returns "" if no service remains.
func (r remains) String() string {
	if len(r.instances) == 0 {
		return ""
	}

	summary := fmt.Sprintf("%d of its services", len(r.instances))
	if len(r.bindings) > 0 {
		summary += fmt.Sprintf(" and %d of their bindings", len(r.bindings))
	}

	first := slices.Concat(r.bindings, r.instances)[0]
	summary += fmt.Sprintf("; the first is %s %s", first.GetKind(), nameOf(first))

	if why := reasonOf(first); why != "" {
		summary += ", which reports " + why
	}

	return summary
}

// reasonOf returns the reason and message of an object's Ready condition, or "" if the object is ready or has no such condition.
func reasonOf(object unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // A field of an unexpected type is treated as absent.

	for _, each := range conditions {
		condition, ok := each.(map[string]any)
		if !ok || condition["type"] != "Ready" || condition["status"] == "True" {
			continue
		}

		said, _ := condition["reason"].(string)
		if message, _ := condition["message"].(string); message != "" {
			said += ": " + message
		}

		return brief(said)
	}

	return ""
}

// nameOf returns "namespace/name", or only the name of a cluster-scoped object.
func nameOf(object unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}

	return object.GetNamespace() + "/" + object.GetName()
}

// text returns the string field at the path, or "" if there is none.
func text(object unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(object.Object, path...) // A field of an unexpected type is treated as absent.

	return found
}
