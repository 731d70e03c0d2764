package deployments

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// uninstall removes the objects from the target cluster, then the Bundles and the finalizer. After the deletion timeout, it removes the
// Bundles and the finalizer even if objects remain. An event then lists these objects.
func (p *pass) uninstall(ctx context.Context) (reconcile.Result, error) {
	if p.deployment.Spec.Suspend {
		p.Events.Eventf(p.deployment, nil, "Warning", v1alpha1.ReasonSuspended, "Uninstall", "suspended: the objects remain on the cluster")

		return reconcile.Result{}, p.finish(ctx)
	}

	waiting, done := p.removeObjects(ctx)
	if done {
		return reconcile.Result{}, p.finish(ctx)
	}

	timeout := deletionTimeout
	if p.deployment.Spec.DeletionTimeout != nil {
		timeout = p.deployment.Spec.DeletionTimeout.Duration
	}

	left := p.deployment.DeletionTimestamp.Add(timeout).Sub(p.now())
	if left <= 0 {
		p.Events.Eventf(p.deployment, nil, "Warning", v1alpha1.ReasonUninstallFailed, "Uninstall", "%s",
			note(fmt.Sprintf("not uninstalled after %s: %s; %s", timeout, waiting, p.remaining(ctx))))

		return reconcile.Result{}, p.finish(ctx)
	}

	if err := p.write(ctx); err != nil {
		return reconcile.Result{}, err
	}

	return reconcile.Result{RequeueAfter: max(min(left, waitInterval), time.Millisecond)}, nil
}

// maxEvent is the maximum length of an event's note, in bytes. The API server rejects events with longer notes.
const maxEvent = 1024

// note truncates text to maxEvent bytes.
func note(text string) string {
	for limit := maxEvent; len(text) > maxEvent; limit = limit * 3 / 4 {
		text = failure.Shorten(text, limit)
	}

	return text
}

// removeObjects removes the installed objects from the target cluster, and sets the conditions. waiting describes the objects that
// still exist, or the error.
func (p *pass) removeObjects(ctx context.Context) (waiting string, done bool) {
	cluster, err := p.clusters.of(ctx, p.deployment)
	if err != nil {
		p.setUnknown(v1alpha1.ReasonErrorGettingClient, err.Error())

		return err.Error(), false
	}

	p.cluster = cluster

	remove := p.applier.Remove
	if p.deployment.Spec.DeletionPolicy == v1alpha1.DeletionPolicyKeepUsed {
		remove = p.applier.RemoveUnused
	}

	progress, err := remove(ctx, cluster, p.owner)
	if err != nil {
		p.setFailed(v1alpha1.ReasonUninstallFailed, err)

		return failure.Of(err).ForOperators(), false
	}

	p.setInstalled(v1alpha1.ReasonUninstalling, progress.Message)

	return progress.Message, progress.Done
}

// remaining returns the note of the event that lists the objects that are still on the cluster.
func (p *pass) remaining(ctx context.Context) string {
	if p.cluster == nil {
		return "the objects on the cluster are unknown"
	}

	objects, err := p.applier.Remaining(ctx, p.cluster, p.owner)
	if err != nil {
		return "the objects on the cluster are unknown"
	}

	return fmt.Sprintf("%s left on the cluster: %s", english.Plural(len(objects), "object", ""), strings.Join(objects, ", "))
}

// finish deletes the Bundles and removes the finalizer.
func (p *pass) finish(ctx context.Context) error {
	list := &v1alpha1.BundleList{}
	if err := p.Client.List(ctx, list, ownedBy(p.deployment.Name)); err != nil {
		return fmt.Errorf("listing the Bundles: %w", err)
	}

	for i := range list.Items {
		if err := p.deleteBundle(ctx, &list.Items[i]); err != nil {
			return err
		}
	}

	p.forget(p.deployment.Name)
	controllerutil.RemoveFinalizer(p.deployment, p.finalizer())

	return client.IgnoreNotFound(p.patchFinalizers(ctx, p.deployment))
}
