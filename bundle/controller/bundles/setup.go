package bundles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
)

const (
	// concurrency is the number of Bundles that are reconciled at the same time. A reconciliation is short, because the Unpacker
	// fetches the content.
	concurrency = 4
	// minRetry and maxRetry limit the pause before a Bundle is reconciled again after an error of the API server.
	minRetry = 100 * time.Millisecond
	maxRetry = time.Minute
)

// Options configures the controller. All fields are required.
type Options struct {
	Unpacker *Unpacker
	// Namespace contains the ConfigMaps with content, and the Secrets and ConfigMaps with public keys.
	Namespace string
	// ContentURL returns the address of the content of the Bundle with the given name.
	ContentURL func(name string) string
	// UploadURL returns the address to which the content of the Bundle with the given name is uploaded.
	UploadURL func(name string) string
	// CleanUp removes the files that the replica keeps for a deleted Bundle. It must succeed if there are no such files.
	CleanUp func(ctx context.Context, bundle *v1alpha1.Bundle) error
}

// Add adds the controller to a manager. The controller runs in the replica that is elected leader.
func Add(to manager.Manager, options Options) error {
	if options.Namespace == "" {
		return errors.New("the Bundle controller needs the namespace of the provisioner")
	}

	unpacker := options.Unpacker
	target := &reconciler{
		client: to.GetClient(), unpacker: unpacker, events: to.GetEventRecorder("bundle-provisioner"),
		contentURL: options.ContentURL, uploadURL: options.UploadURL, cleanUp: options.CleanUp,
	}
	named := waiting{reader: to.GetClient(), unpacker: unpacker}
	local := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetNamespace() == options.Namespace })

	secrets := &metav1.PartialObjectMetadata{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))

	err := builder.ControllerManagedBy(to).Named("bundles").
		For(&v1alpha1.Bundle{}, builder.WithPredicates(ofClasses(unpacker.formats), relevant())).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(named.requests(usesConfigMap)), builder.WithPredicates(local)).
		WatchesMetadata(secrets, handler.EnqueueRequestsFromMapFunc(named.requests(usesSecret)), builder.WithPredicates(local)).
		WatchesRawSource(source.Func(unpacker.enqueue)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter:             jittered{workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetry, maxRetry)},
		}).Complete(target)
	if err != nil {
		return fmt.Errorf("adding the Bundle controller: %w", err)
	}

	return nil
}

// ofClasses selects the Bundles whose class is in formats. The class of a Bundle never changes.
func ofClasses(formats map[string]Format) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		bundle, isBundle := object.(*v1alpha1.Bundle)
		if !isBundle {
			return false
		}

		_, ours := formats[bundle.Spec.ProvisionerClassName]

		return ours
	})
}

// relevant selects the updates that require a reconciliation: changes of the generation (which a deletion also changes), resyncs,
// and the removal of the status or a finalizer by somebody else, which the controller must restore. It ignores the controller's
// own changes of the status.
func relevant() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(change event.UpdateEvent) bool {
		before, known := change.ObjectOld.(*v1alpha1.Bundle)
		after, isBundle := change.ObjectNew.(*v1alpha1.Bundle)

		return known && isBundle && (before.Generation != after.Generation ||
			before.Status.Phase != "" && after.Status.Phase == "" || len(after.Finalizers) < len(before.Finalizers) ||
			before.ResourceVersion == after.ResourceVersion) // a resync
	}}
}

// waiting finds the Bundles that may be waiting for a ConfigMap or a Secret.
type waiting struct {
	reader   client.Reader
	unpacker *Unpacker
}

// requests returns a function that finds the Bundles that use the changed object and are not unpacked, and makes their next
// attempts due. The function always returns nil, because Wake itself causes the reconciliations.
func (w waiting) requests(uses func(source v1alpha1.BundleSource, name string) bool) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		list := &v1alpha1.BundleList{}
		if err := w.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil // cannot happen: the list is in the cache
		}

		for i := range list.Items {
			bundle := &list.Items[i]
			_, ours := w.unpacker.formats[bundle.Spec.ProvisionerClassName]

			if ours && uses(bundle.Spec.Source, object.GetName()) && bundle.Status.Phase != v1alpha1.PhaseUnpacked {
				w.unpacker.Wake(bundle.Name)
			}
		}

		return nil
	}
}

// usesConfigMap reports whether a source reads the ConfigMap with the given name, as content or for public keys.
func usesConfigMap(source v1alpha1.BundleSource, name string) bool {
	if source.Image != nil && source.Image.Verification != nil && source.Image.Verification.ConfigMap != nil {
		return source.Image.Verification.ConfigMap.Name == name
	}

	return slices.ContainsFunc(source.ConfigMaps, func(one v1alpha1.ConfigMapSource) bool { return one.ConfigMap.Name == name })
}

// usesSecret reports whether a source reads public keys from the Secret with the given name. Secrets with credentials do not
// count: attempts that fail because of wrong credentials are retried in any case.
func usesSecret(source v1alpha1.BundleSource, name string) bool {
	return source.Image != nil && source.Image.Verification != nil && source.Image.Verification.Secret != nil &&
		source.Image.Verification.Secret.Name == name
}

// enqueue runs until the context ends. It adds each Bundle whose attempt has made progress, or whose source has changed, to the
// queue. The controller calls it when the replica is elected leader.
func (u *Unpacker) enqueue(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	u.forgetStuck()

	go func() {
		for {
			for _, name := range u.take() {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
			}

			select {
			case <-ctx.Done():
				return
			case <-u.signal:
			}
		}
	}()

	return nil
}

// jittered varies the pauses of a rate limiter at random by up to a fifth.
type jittered struct {
	workqueue.TypedRateLimiter[reconcile.Request]
}

// When implements workqueue.TypedRateLimiter.
func (j jittered) When(item reconcile.Request) time.Duration {
	return wait.Jitter(j.TypedRateLimiter.When(item)*4/5, 0.5)
}
