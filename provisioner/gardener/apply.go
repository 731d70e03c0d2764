package gardener

import (
	"context"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// fieldManager owns the fields that the Provisioner writes. All writes are server-side applies with this one manager, so a field that is
// omitted later is removed.
const fieldManager = "provisioner"

// Apply creates or updates the Shoot and the objects that it refers to; fields that Gardener has set in the meantime stay. It asks Gardener
// to retry a Shoot that has failed. A Shoot of another runtime is left alone: that is failure.Conflict.
func (c *Client) Apply(ctx context.Context, objects *shoot.Objects) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	existing, err := c.get(ctx, objects.Shoot.Name)

	switch {
	case failure.Is(err, failure.NotFound):
	case err != nil:
		return err
	case existing.Annotations[shoot.AnnotationRuntimeID] != objects.Shoot.Annotations[shoot.AnnotationRuntimeID]:
		return failure.New(failure.Conflict, "a cluster named %q exists already and belongs to something else: "+
			"delete it in Gardener or use another name", objects.Shoot.Name).WithReason(failure.ReasonAlreadyExists, failure.ComponentGardener)
	case existing.DeletionTimestamp != nil:
		return BeingRemoved(existing)
	default:
		objects.Keep(existing)
	}

	if err := c.write(ctx, objects); err != nil || existing == nil {
		return err
	}

	return c.retryFailed(ctx, existing)
}

// Change updates the Shoot. If it has changed since it was read, that is failure.Transient: a frozen replica must not undo a later order.
func (c *Client) Change(ctx context.Context, read *gardencorev1beta1.Shoot, objects *shoot.Objects) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	if read.DeletionTimestamp != nil {
		return BeingRemoved(read)
	}

	objects.Shoot.UID, objects.Shoot.ResourceVersion = read.UID, read.ResourceVersion

	if err := c.write(ctx, objects); err != nil {
		return err
	}

	return c.retryFailed(ctx, read)
}

// BeingRemoved is the error of an operation on a cluster that is being deleted.
func BeingRemoved(existing *gardencorev1beta1.Shoot) error {
	return failure.New(failure.Conflict, "the cluster %q is being deleted in Gardener", existing.Name).
		WithReason(failure.ReasonConflict, failure.ComponentGardener)
}

// write applies the objects, referenced ones first.
func (c *Client) write(ctx context.Context, objects *shoot.Objects) error {
	if objects.Authentication != nil {
		if err := c.apply(ctx, objects.Authentication, "applying the authentication configuration %q"); err != nil {
			return err
		}
	}

	return c.apply(ctx, objects.Shoot, "applying the Shoot %q")
}

func (c *Client) apply(ctx context.Context, object client.Object, doing string) error {
	manifest, err := shoot.Manifest(object)
	if err != nil {
		return failure.Wrap(failure.Internal, err, "an object for Gardener cannot be encoded")
	}

	err = c.connection().Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner(fieldManager), client.ForceOwnership)

	return explain(err, doing, object.GetName())
}

// retryFailed asks Gardener to retry a Shoot that had failed before it was applied.
func (c *Client) retryFailed(ctx context.Context, before *gardencorev1beta1.Shoot) error {
	if !needsRetry(before) {
		return nil
	}

	return c.annotate(ctx, before, v1beta1constants.GardenerOperation, v1beta1constants.ShootOperationRetry)
}

// needsRetry reports whether Gardener has stopped to reconcile the Shoot and has not been asked to retry.
func needsRetry(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation

	return last != nil && last.State == gardencorev1beta1.LastOperationStateFailed && shoot.Status.ObservedGeneration >= shoot.Generation
}

// Tidy deletes the runtime's ConfigMaps that its Shoot does not refer to; all of them if present is nil.
func (c *Client) Tidy(ctx context.Context, runtimeID string, present *gardencorev1beta1.Shoot) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	configMaps := &corev1.ConfigMapList{}
	if err := c.connection().List(ctx, configMaps, client.InNamespace(c.namespace), client.MatchingLabels{shoot.LabelRuntimeID: runtimeID}); err != nil {
		return explain(err, "listing the objects of the Shoot of runtime %s", runtimeID)
	}

	for i := range configMaps.Items {
		if each := &configMaps.Items[i]; each.Name != referred(present) {
			err := explain(c.connection().Delete(ctx, each), "deleting the authentication configuration %q", each.Name)
			if err != nil && !failure.Is(err, failure.NotFound) {
				return err
			}
		}
	}

	return nil
}

// ConfigMapOwners returns the ids of the runtimes with ConfigMaps in the project, sorted. Their Shoots may be gone.
func (c *Client) ConfigMapOwners(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	configMaps := &corev1.ConfigMapList{}
	if err := c.connection().List(ctx, configMaps, client.InNamespace(c.namespace), client.HasLabels{shoot.LabelRuntimeID}); err != nil {
		return nil, explain(err, "listing the objects of Shoots")
	}

	var runtimeIDs []string
	for _, each := range configMaps.Items {
		runtimeIDs = append(runtimeIDs, each.Labels[shoot.LabelRuntimeID])
	}

	slices.Sort(runtimeIDs)

	return slices.Compact(runtimeIDs), nil
}

// referred returns the name of the ConfigMap that the Shoot refers to, or empty.
func referred(present *gardencorev1beta1.Shoot) string {
	if present == nil {
		return ""
	}

	server := present.Spec.Kubernetes.KubeAPIServer
	if server == nil || server.StructuredAuthentication == nil {
		return ""
	}

	return server.StructuredAuthentication.ConfigMapName
}
