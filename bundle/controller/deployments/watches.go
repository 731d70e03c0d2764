package deployments

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/clients/applier"
)

const (
	// workers is the maximum number of BundleDeployments that are reconciled at the same time.
	workers = 8
	// An error without its own retry interval is retried after firstBackoff. The pause doubles with each further error, up to
	// lastBackoff.
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
)

// Setup adds the controller to a manager. The name of the controller contains the class, so one manager can have several controllers.
func (r *Reconciler) Setup(manager ctrl.Manager) error {
	if err := manager.Add(watching{r.watches}); err != nil {
		return fmt.Errorf("adding the watches of installed objects: %w", err)
	}

	secrets := &metav1.PartialObjectMetadata{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kindSecret))

	return ctrl.NewControllerManagedBy(manager).
		Named("bundledeployment-"+r.Class).
		For(&v1alpha1.BundleDeployment{}, builder.WithPredicates(r.concerns())).
		Watches(&v1alpha1.Bundle{}, handler.EnqueueRequestsFromMapFunc(r.ownerOf)).
		Watches(&v1alpha1.BundleDeployment{}, handler.EnqueueRequestsFromMapFunc(r.dependents)).
		WatchesMetadata(secrets, handler.EnqueueRequestsFromMapFunc(r.targeting)).
		WatchesRawSource(ctrlsource.Func(r.changes.enqueue)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, lastBackoff),
		}).
		Complete(r)
}

// watching runs the watches of installed objects, only in the replica that is elected leader.
type watching struct{ watches *applier.Watches }

// Start implements manager.Runnable.
func (w watching) Start(ctx context.Context) error { return w.watches.Run(ctx) }

// concerns selects BundleDeployments that have this class, or that had it before and still have its finalizer. It ignores updates
// of the status, which only the controller itself writes.
func (r *Reconciler) concerns() predicate.Predicate {
	own := predicate.NewPredicateFuncs(func(object client.Object) bool {
		deployment, ok := object.(*v1alpha1.BundleDeployment)

		return ok && (deployment.Spec.ProvisionerClassName == r.Class || controllerutil.ContainsFinalizer(deployment, r.finalizer()))
	})

	changed := predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, after := update.ObjectOld, update.ObjectNew

		return before.GetGeneration() != after.GetGeneration() || before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
			!slices.Equal(before.GetFinalizers(), after.GetFinalizers())
	}}

	return predicate.And(own, changed)
}

// ownerOf returns a request for the BundleDeployment that owns a Bundle, if the BundleDeployment has this class.
func (r *Reconciler) ownerOf(ctx context.Context, bundle client.Object) []reconcile.Request {
	labels := bundle.GetLabels()
	if labels[v1alpha1.LabelOwnerKind] != v1alpha1.KindBundleDeployment {
		return nil
	}

	key := client.ObjectKey{Name: labels[v1alpha1.LabelOwnerName]}
	owner := &v1alpha1.BundleDeployment{}

	if r.Client.Get(ctx, key, owner) != nil || owner.Spec.ProvisionerClassName != r.Class {
		return nil
	}

	return []reconcile.Request{{NamespacedName: key}}
}

// dependents returns requests for the BundleDeployments of this class that may be waiting for a change to the given
// BundleDeployment, because they depend on it. If the given BundleDeployment is being deleted, failed installations may succeed
// now, because it may own some of their objects. dependents then makes the next attempts of all failed BundleDeployments due, and
// returns requests for them, too. dependents is called for each change to a BundleDeployment, so it does not list all
// BundleDeployments.
func (r *Reconciler) dependents(_ context.Context, changed client.Object) []reconcile.Request {
	names := r.neededBy(need{kind: v1alpha1.KindBundleDeployment, name: changed.GetName()})
	if !changed.GetDeletionTimestamp().IsZero() {
		names = append(names, r.retryOthers(changed.GetName())...)
	}

	return requestsFor(names)
}

// targeting returns requests for the BundleDeployments of this class that read their kubeconfig from the given Secret.
func (r *Reconciler) targeting(_ context.Context, secret client.Object) []reconcile.Request {
	if secret.GetNamespace() != r.Namespace {
		return nil
	}

	return requestsFor(r.neededBy(need{kind: kindSecret, name: secret.GetName()}))
}

func requestsFor(names []string) (requests []reconcile.Request) {
	for _, name := range names {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
	}

	return requests
}

// changeDelay is how long changes to the objects of BundleDeployments are collected before the BundleDeployments are reconciled.
const changeDelay = 200 * time.Millisecond

// changes collects the BundleDeployments whose objects have changed.
type changes struct {
	mutex  sync.Mutex
	names  map[string]bool
	signal chan struct{}
}

func newChanges() *changes { return &changes{names: map[string]bool{}, signal: make(chan struct{}, 1)} }

// report adds a BundleDeployment and wakes enqueue.
func (c *changes) report(name string) {
	c.mutex.Lock()
	c.names[name] = true
	c.mutex.Unlock()

	select {
	case c.signal <- struct{}{}:
	default: // enqueue has not read the previous signal yet, and will find both names
	}
}

// take returns the names that were reported since the last call.
func (c *changes) take() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	names := slices.Collect(maps.Keys(c.names))
	clear(c.names)

	return names
}

// enqueue adds to the queue the BundleDeployments whose objects have changed.
func (c *changes) enqueue(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.signal:
			}

			select {
			case <-ctx.Done():
				return
			case <-time.After(changeDelay):
			}

			for _, name := range c.take() {
				queue.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
			}
		}
	}()

	return nil
}
