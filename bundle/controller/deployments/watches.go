package deployments

import (
	"context"
	"slices"
	"time"

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

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

const (
	// workers is the number of BundleDeployments that are processed at the same time.
	workers = 8
	// Errors without an interval of their own are retried after firstBackoff, which doubles up to lastBackoff.
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
)

// Setup adds the controller to a manager. Its name contains the class, so one manager can have several.
func (r *Reconciler) Setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("bundledeployment-"+r.Class).
		For(&v1alpha1.BundleDeployment{}, builder.WithPredicates(r.concerns())).
		Watches(&v1alpha1.Bundle{}, handler.EnqueueRequestsFromMapFunc(r.ownerOf)).
		Watches(&v1alpha1.BundleDeployment{}, handler.EnqueueRequestsFromMapFunc(r.dependents)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, lastBackoff),
		}).
		Complete(r)
}

// concerns selects BundleDeployments of this class, and those that have its finalizer from the time when they were. Of updates, it selects
// those of the spec and the metadata: the controller writes the status itself.
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

// ownerOf returns the BundleDeployment of a Bundle, if it has this class.
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

// dependents returns the BundleDeployments of this class that may wait for a change of another one: those that depend on it, and, when it is
// deleted, those that could not be installed, because it may have held one of their objects.
func (r *Reconciler) dependents(ctx context.Context, changed client.Object) (requests []reconcile.Request) {
	list := &v1alpha1.BundleDeploymentList{}
	if r.Client.List(ctx, list) != nil {
		return nil
	}

	for i := range list.Items {
		other := &list.Items[i]
		if other.Spec.ProvisionerClassName != r.Class || other.Name == changed.GetName() {
			continue
		}

		depends := slices.Contains(other.Spec.DependsOn, v1alpha1.Dependency{Name: changed.GetName()})
		if depends || !changed.GetDeletionTimestamp().IsZero() && r.retryNow(other) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
		}
	}

	return requests
}

// retryNow makes the next attempt of a failed BundleDeployment due, and reports whether there was a failure.
func (r *Reconciler) retryNow(deployment *v1alpha1.BundleDeployment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	known := r.memory[deployment.UID]
	if known == nil || known.failed == "" {
		return false
	}

	known.retry = time.Time{}

	return true
}
