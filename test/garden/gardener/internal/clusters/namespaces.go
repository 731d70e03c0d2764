package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// retryAfter is the resync period of the informers, and therefore the longest pause before a failed attempt is repeated.
const retryAfter = 5 * time.Second

// namespaces empties and finalizes the terminating namespaces of a runtime. In a real cluster, kube-controller-manager does this.
type namespaces struct {
	client  *kubernetes.Clientset
	objects metadata.Interface
	log     logrus.FieldLogger
}

// endNamespaces empties and finalizes terminating namespaces until the context ends.
func endNamespaces(ctx context.Context, admin *rest.Config, log logrus.FieldLogger) error {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("creating the client for namespaces: %w", err)
	}
	objects, err := metadata.NewForConfig(admin)
	if err != nil {
		return fmt.Errorf("creating the client for the objects in namespaces: %w", err)
	}
	n := namespaces{client: client, objects: objects, log: log}
	informer := informers.NewSharedInformerFactory(client, retryAfter).Core().V1().Namespaces().Informer()
	handle := func(object any) {
		if namespace, ok := object.(*corev1.Namespace); ok && namespace.DeletionTimestamp != nil {
			n.end(ctx, namespace)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: handle, UpdateFunc: func(_, object any) { handle(object) },
	}); err != nil {
		return fmt.Errorf("watching the namespaces: %w", err)
	}
	informer.RunWithContext(ctx)
	return nil
}

// end deletes the objects in a terminating namespace and then removes its finalizers, so that the API server removes the
// namespace. If objects remain, the next event or resync tries again.
func (n namespaces) end(ctx context.Context, namespace *corev1.Namespace) {
	err := n.empty(ctx, namespace.Name)
	if err == nil {
		ended := namespace.DeepCopy()
		ended.Spec.Finalizers = nil
		_, err = n.client.CoreV1().Namespaces().Finalize(ctx, ended, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		n.log.WithError(err).WithField("namespace", namespace.Name).Debug("a deleted namespace of a runtime still contains objects; trying again")
	}
}

// empty deletes all objects in the namespace. Objects with finalizers remain until their controllers have removed the finalizers.
func (n namespaces) empty(ctx context.Context, namespace string) error {
	lists, err := n.client.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return fmt.Errorf("discovering the kinds of objects: %w", err)
	}
	var failures []error
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("parsing the group of kinds: %w", err)
		}
		for _, kind := range list.APIResources {
			if slices.Contains(kind.Verbs, "deletecollection") {
				failures = append(failures, n.remove(ctx, group.WithResource(kind.Name), namespace))
			}
		}
	}
	return errors.Join(failures...)
}

// remove deletes the objects of one kind. It returns an error if some of them remain.
func (n namespaces) remove(ctx context.Context, kind schema.GroupVersionResource, namespace string) error {
	objects := n.objects.Resource(kind).Namespace(namespace)
	if err := objects.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("deleting the %s: %w", kind.Resource, err)
	}
	left, err := objects.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("listing the %s: %w", kind.Resource, err)
	}
	if len(left.Items) > 0 {
		return fmt.Errorf("%s %s still exists", kind.Resource, left.Items[0].Name)
	}
	return nil
}
