package gardener

import (
	"context"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// Apply creates the Shoot and the objects that it refers to, or updates them if an earlier attempt has created them. It
// preserves the fields that Gardener has set in the meantime. If the existing Shoot has failed, Apply requests a retry. Like Change,
// it requests the rollout if the owner has confined changes to the maintenance window. It fails
// with failure.Conflict if the name belongs to the Shoot of another runtime, or if the Shoot is being deleted, and with
// failure.Transient if a Shoot with this name is created or changed during the call.
func (c *Client) Apply(ctx context.Context, objects *shoot.Objects) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	existing, err := c.Get(ctx, objects.Shoot.Name)

	switch {
	case failure.Is(err, failure.NotFound):
		objects.Shoot.ResourceVersion = neverStored
	case err != nil:
		return err
	case existing.Annotations[shoot.AnnotationRuntimeID] != objects.Shoot.Annotations[shoot.AnnotationRuntimeID]:
		return failure.New(failure.Conflict, "a cluster named %q already exists and has another owner: "+
			"delete it in Gardener or use another name", objects.Shoot.Name).WithReason(failure.ReasonAlreadyExists, failure.ComponentGardener)
	case existing.DeletionTimestamp != nil:
		return BeingRemoved(existing)
	default:
		// An earlier attempt has created the Shoot. Gardener may have changed it since.
		objects.Keep(existing)

		owned, err := c.takeOver(ctx, existing, objects.DroppedPools)
		if err != nil {
			return err
		}

		guard(objects.Shoot, existing, owned)
	}

	if err := c.write(ctx, objects); err != nil || existing == nil {
		return err
	}

	return c.rollOut(ctx, existing)
}

// Change updates the Shoot that the caller has read. It fails with failure.Transient if the Shoot has changed since then, so that
// a replica that was paused cannot undo a later order, and with failure.Conflict if the Shoot is being deleted. Like Apply, it
// requests a retry of a failed Shoot. If the owner of the Shoot has confined changes to the maintenance window, Change requests the
// rollout, because clients wait for it.
func (c *Client) Change(ctx context.Context, read *gardencorev1beta1.Shoot, objects *shoot.Objects) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	if read.DeletionTimestamp != nil {
		return BeingRemoved(read)
	}

	owned, err := c.takeOver(ctx, read, objects.DroppedPools)
	if err == nil && objects.Shoot.Annotations[shoot.AnnotationTraceparent] == "" {
		owned, err = c.removeTrace(ctx, owned)
	}

	if err != nil {
		return err
	}

	guard(objects.Shoot, read, owned)

	if err := c.write(ctx, objects); err != nil {
		return err
	}

	return c.rollOut(ctx, read)
}

// neverStored is a resource version that no object has, because an empty etcd has this revision. The API server compares the
// resource version of an apply only with an existing object, so an apply with this version can create an object but not change
// one.
const neverStored = "1"

// guard makes the API server reject the apply of a Shoot that has been changed or recreated since it was read. owned is the Shoot
// as takeOver and removeTrace have left it.
func guard(desired, read, owned *gardencorev1beta1.Shoot) {
	desired.UID, desired.ResourceVersion = read.UID, owned.ResourceVersion
}

// BeingRemoved returns a failure.Conflict error for a change to a Shoot that is being deleted.
func BeingRemoved(existing *gardencorev1beta1.Shoot) error {
	return failure.New(failure.Conflict, "the cluster %q is being deleted in Gardener", existing.Name).
		WithReason(failure.ReasonConflict, failure.ComponentGardener)
}

// write applies the objects. The Shoot comes last, because Gardener rejects references to missing objects.
func (c *Client) write(ctx context.Context, objects *shoot.Objects) error {
	if objects.Authentication != nil {
		if err := c.apply(ctx, objects.Authentication, "applying the authentication configuration %q"); err != nil {
			return err
		}
	}

	return c.apply(ctx, objects.Shoot, "applying the Shoot %q")
}

// apply sends one server-side apply request. It takes ownership of fields that other field managers, for example kubectl, have
// set, because the order determines these fields. doing is the format string of the error message, with one verb for the object's
// name.
func (c *Client) apply(ctx context.Context, object client.Object, doing string) error {
	manifest, err := shoot.Manifest(object)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "encoding an object for Gardener failed")
	}

	err = c.connection().Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner(fieldManager), client.ForceOwnership)

	return explain(err, doing, object.GetName())
}

// rollOut makes Gardener work on a Shoot after an apply, if the apply alone does not. In a Shoot that confines changes of its spec to the
// maintenance window, they do not increase the generation. Without a request, the last success would look like the success of the
// apply, which Gardener starts to roll out only hours later.
func (c *Client) rollOut(ctx context.Context, before *gardencorev1beta1.Shoot) error {
	maintenance := before.Spec.Maintenance
	confined := maintenance != nil && ptr.Deref(maintenance.ConfineSpecUpdateRollout, false)

	if confined && !failed(before) {
		return c.annotate(ctx, before, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
	}

	return c.retryFailed(ctx, before)
}

// failed reports whether Gardener's last operation on the Shoot has failed.
func failed(existing *gardencorev1beta1.Shoot) bool {
	last := existing.Status.LastOperation

	return last != nil && last.State == gardencorev1beta1.LastOperationStateFailed
}

// retryFailed requests a retry of a Shoot that had failed before the apply. Without this request, Gardener reconciles a failed
// Shoot only if the apply has changed its spec.
func (c *Client) retryFailed(ctx context.Context, before *gardencorev1beta1.Shoot) error {
	if !TakenUp(before) || !failed(before) {
		return nil
	}

	return c.Retry(ctx, before)
}

// Tidy deletes the runtime's ConfigMaps that its Shoot does not refer to, or all of them if present is nil. Callers first wait
// until Gardener has reconciled the Shoot, because Gardener reads the old ConfigMap until then.
func (c *Client) Tidy(ctx context.Context, runtimeID string, present *gardencorev1beta1.Shoot) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	configMaps := &corev1.ConfigMapList{}
	if err := c.list(ctx, configMaps, client.MatchingLabels{shoot.LabelRuntimeID: runtimeID}); err != nil {
		return explain(err, "listing the objects of the Shoot of runtime %s", runtimeID)
	}

	for _, each := range configMaps.Items {
		if present == nil || each.Name != shoot.ReferredAuthentication(present) {
			err := explain(c.connection().Delete(ctx, &each), "deleting the authentication configuration %q", each.Name)
			if err != nil && !failure.Is(err, failure.NotFound) {
				return err
			}
		}
	}

	return nil
}

// ConfigMapOwners returns the sorted IDs of the runtimes that have ConfigMaps in the project, even if their Shoots no longer
// exist. The cleanup of orphaned objects uses it.
func (c *Client) ConfigMapOwners(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	configMaps := &corev1.ConfigMapList{}
	if err := c.list(ctx, configMaps, client.HasLabels{shoot.LabelRuntimeID}); err != nil {
		return nil, explain(err, "listing the objects of Shoots")
	}

	var runtimeIDs []string
	for _, each := range configMaps.Items {
		runtimeIDs = append(runtimeIDs, each.Labels[shoot.LabelRuntimeID])
	}

	slices.Sort(runtimeIDs)

	return slices.Compact(runtimeIDs), nil
}
