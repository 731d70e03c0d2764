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

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Kinds of the Kubernetes Service Catalog.
const (
	serviceInstances = "serviceinstances"
	serviceBindings  = "servicebindings"
	serviceClasses   = "clusterserviceclasses"
	clusterBrokers   = "clusterservicebrokers"
	namespaceBrokers = "servicebrokers"
)

const (
	// mostDeletions and pieceOfWork bound the work of one call; the next one continues.
	mostDeletions = 100
	pieceOfWork   = 30 * time.Second
)

// resource returns a resource of the service catalog.
func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "servicecatalog.k8s.io", Version: "v1beta1", Resource: name}
}

// RemoveServices implements processes.Clusters. Each call does a bounded amount of work; left describes the remaining services for users and
// is empty when all are gone. A cluster without a service catalog has no services.
func (a Access) RemoveServices(ctx context.Context, shootName, address string) (left string, err error) {
	err = a.withServices(ctx, shootName, func(ctx context.Context, services services) error {
		found, err := services.remove(ctx, address)
		left = found.String()

		return explain(err, "the services of the cluster %q could not be removed", shootName)
	})

	return left, err
}

// ReleaseBrokers implements processes.Clusters. Without it, finalizers of brokers could block the deletion of the cluster. They protect
// classes and plans, which are deleted with the cluster anyway.
func (a Access) ReleaseBrokers(ctx context.Context, shootName string) error {
	return a.withServices(ctx, shootName, func(ctx context.Context, services services) error {
		return explain(services.releaseBrokers(ctx), "the finalizers of the service brokers of the cluster %q could not be removed", shootName)
	})
}

// withServices runs work in a session with the cluster.
func (a Access) withServices(ctx context.Context, shootName string, work func(context.Context, services) error) error {
	ctx, cancel := context.WithTimeout(ctx, pieceOfWork)
	defer cancel()

	cluster, disconnect, err := a.Connect(ctx, shootName)
	if err != nil {
		return err
	}
	defer disconnect()

	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "creating a client of the cluster %q failed", shootName)
	}

	return work(ctx, services{client})
}

// services are those of one cluster.
type services struct {
	client dynamic.Interface
}

// remove deletes the services of brokers whose URL has the prefix, each once its bindings are gone: until then the catalog keeps it. It
// returns what still exists. An object that cannot be deleted does not stop the others.
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

	var free []unstructured.Unstructured

	for _, instance := range left.instances {
		if !bound[nameOf(instance)] {
			free = append(free, instance)
		}
	}

	return left, errors.Join(s.delete(ctx, serviceBindings, left.bindings), s.delete(ctx, serviceInstances, free))
}

// of returns the services of brokers whose URL has the prefix.
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

	var wanted []unstructured.Unstructured

	for _, instance := range found {
		if offered[text(instance, "spec", "clusterServiceClassRef", "name")] {
			wanted = append(wanted, instance)
		}
	}

	return wanted, err
}

// delete deletes objects that are not being deleted yet, up to the limit of one call.
func (s services) delete(ctx context.Context, of string, objects []unstructured.Unstructured) error {
	var problems []error

	for asked, object := range staying(objects) {
		if asked == mostDeletions {
			break
		}

		err := s.client.Resource(resource(of)).Namespace(object.GetNamespace()).Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			problems = append(problems, fmt.Errorf("%s %s: %w", object.GetKind(), nameOf(object), err))
		}
	}

	return errors.Join(problems...)
}

// releaseBrokers removes the finalizers of all service brokers. Their services are gone by now or given up, and the controller that would
// remove the finalizers may be deleted before the brokers.
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

// names returns the names of the objects that match.
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

// list returns the objects of all namespaces; none if the cluster does not serve the resource.
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

// remains are the services and bindings that still exist.
type remains struct {
	bindings, instances []unstructured.Unstructured
}

// String counts the remaining objects and explains the first one: a binding if any is left, because services wait for theirs. It is empty
// if nothing is left.
func (r remains) String() string {
	if len(r.instances) == 0 {
		return ""
	}

	summary := fmt.Sprintf("%d of its services", len(r.instances))
	if len(r.bindings) > 0 {
		summary += fmt.Sprintf(" and %d of their bindings", len(r.bindings))
	}

	first := slices.Concat(r.bindings, r.instances)[0]
	summary += fmt.Sprintf(", first of all %s %s", first.GetKind(), nameOf(first))

	if why := reasonOf(first); why != "" {
		summary += ", which says " + why
	}

	return summary
}

// reasonOf returns the message of the service catalog about an object that is not ready.
func reasonOf(object unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // of another type: no message

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

// staying returns the objects that are not being deleted.
func staying(objects []unstructured.Unstructured) []unstructured.Unstructured {
	var picked []unstructured.Unstructured

	for _, object := range objects {
		if object.GetDeletionTimestamp() == nil {
			picked = append(picked, object)
		}
	}

	return picked
}

// nameOf returns the namespace and name of an object.
func nameOf(object unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}

	return object.GetNamespace() + "/" + object.GetName()
}

func text(object unstructured.Unstructured, path ...string) string {
	found, _, _ := unstructured.NestedString(object.Object, path...) // of another type: no name

	return found
}
