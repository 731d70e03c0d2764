package bundles

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/program/lifecycle"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/runtimes"
)

const (
	// renewEvery is the interval between two searches for kubeconfigs that are due for renewal. A kubeconfig is valid for at least
	// ten minutes and is due for renewal after half its lifetime.
	renewEvery = time.Minute
	// renewRetry is the delay before another attempt to renew a kubeconfig.
	renewRetry = 5 * time.Minute
	// sweepEvery is the interval between two searches for objects of deleted runtimes.
	sweepEvery = time.Hour
	// page is the maximum number of objects in a response, and of runtimes in a database query.
	page = 500
)

// Runtimes reads the runtimes of this Provisioner. runtimes.Store implements it.
type Runtimes interface {
	Reader() storage.Tx
	Get(ctx context.Context, tx storage.Tx, id string) (runtimes.Runtime, error)
	// DeletedAmong returns the given IDs whose runtimes are recorded as deleted.
	DeletedAmong(ctx context.Context, ids []string) ([]string, error)
}

// Keeper renews the kubeconfigs of runtimes on the hub, and removes the objects of runtimes that are recorded as deleted. All replicas
// can run it: before it requests a kubeconfig, it postpones the renewal in the Secret, and only one replica succeeds with this write.
type Keeper struct {
	Installer *Installer
	Runtimes  Runtimes
	Clock     clock.WithTicker
	Log       logrus.FieldLogger
}

// Parts returns the lifecycle.Parts that call Renew and Sweep periodically.
func (k Keeper) Parts() []lifecycle.Part {
	return []lifecycle.Part{
		lifecycle.Periodic{Name: "kubeconfig renewal for the bundle provisioner", Every: renewEvery, Work: k.Renew, Clock: k.Clock, Log: k.Log}.Part(),
		lifecycle.Periodic{Name: "bundle provisioner sweep", Every: sweepEvery, Work: k.Sweep, Clock: k.Clock, Log: k.Log}.Part(),
	}
}

// Renew renews the kubeconfigs that are due. It logs the errors of individual renewals and continues.
func (k Keeper) Renew(ctx context.Context) error {
	return k.each(ctx, "Secret", func(found *metav1.PartialObjectMetadata) {
		if due(found, k.Clock.Now()) {
			if err := k.renew(ctx, found); err != nil {
				k.Log.WithError(err).WithField(logging.RuntimeID, found.Labels[LabelRuntime]).Warn("renewing a kubeconfig for the bundle provisioner failed")
			}
		}
	})
}

// renew renews the kubeconfig in one Secret. It never creates one: a Secret that was deleted in the meantime stays deleted.
func (k Keeper) renew(ctx context.Context, listed *metav1.PartialObjectMetadata) error {
	hub, found := k.Installer.Hub(), &corev1.Secret{}
	if err := hub.Get(ctx, client.ObjectKeyFromObject(listed), found); err != nil {
		return ignoreRace(err)
	}

	id := found.Labels[LabelRuntime]
	if found.Name != secretName(id) || !due(found, k.Clock.Now()) {
		return nil
	}

	runtime, err := k.Runtimes.Get(ctx, k.Runtimes.Reader(), id)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil // it belongs to another Provisioner
	case err != nil:
		return fmt.Errorf("reading runtime %s: %w", id, err)
	case !runtime.DeletedAt.IsZero():
		return nil // Sweep removes it
	}

	metav1.SetMetaDataAnnotation(&found.ObjectMeta, annotationRenewal, k.Clock.Now().Add(renewRetry).UTC().Format(time.RFC3339))

	if err := hub.Update(ctx, found); err != nil {
		return ignoreRace(err)
	}

	return k.Installer.renew(ctx, found, runtime.ShootName)
}

// Sweep removes the objects of deleted runtimes from the hub. Such objects remain if a replica froze between two writes, or if the bundle
// provisioner did not respond during a removal. Sweep does not remove objects of runtimes that this Provisioner does not know.
func (k Keeper) Sweep(ctx context.Context) error {
	ids := map[string]bool{}

	for _, kind := range []string{"Secret", v1alpha1.KindBundleDeployment} {
		if err := k.each(ctx, kind, func(found *metav1.PartialObjectMetadata) { ids[found.Labels[LabelRuntime]] = true }); err != nil {
			return err
		}
	}

	var errs []error

	for batch := range slices.Chunk(slices.Sorted(maps.Keys(ids)), page) {
		deleted, err := k.Runtimes.DeletedAmong(ctx, batch)
		if err != nil {
			return fmt.Errorf("looking for deleted runtimes: %w", err)
		}

		for _, id := range deleted {
			k.Log.WithField(logging.RuntimeID, id).Warn("removing the bundle provisioner's objects for a runtime that is recorded as deleted")

			_, err := k.Installer.Forget(ctx, id)
			errs = append(errs, err)
		}
	}

	return errors.Join(errs...)
}

// each calls the given function with the metadata of every object of the given kind that belongs to a runtime.
func (k Keeper) each(ctx context.Context, kind string, use func(*metav1.PartialObjectMetadata)) error {
	version := corev1.SchemeGroupVersion
	options := []client.ListOption{client.HasLabels{LabelRuntime}, client.Limit(page)}

	if kind == v1alpha1.KindBundleDeployment {
		version = v1alpha1.GroupVersion
	} else {
		options = append(options, client.InNamespace(k.Installer.Namespace))
	}

	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(version.WithKind(kind + "List"))

		if err := k.Installer.Hub().List(ctx, list, append(slices.Clone(options), client.Continue(next))...); err != nil {
			return explain(err, "the objects of the bundle provisioner")
		}

		for index := range list.Items {
			use(&list.Items[index])
		}

		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// ignoreRace returns nil for an error that means that another replica has changed or removed the object, and explains any other
// error.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}

	return explain(err, "the kubeconfig of the runtime")
}
