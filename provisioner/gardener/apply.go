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

// fieldManager owns what the Provisioner writes. Create and change go by server-side apply with this one manager, so a field
// that is left out later is removed.
const fieldManager = "provisioner"

// Apply creates the Shoot and what it refers to, or makes what an earlier order has left as it is ordered now, but for what Gardener has
// decided meanwhile; it has Gardener begin anew with a Shoot that it has given up. One of another runtime is left alone: that is
// failure.Conflict.
func (c *Client) Apply(ctx context.Context, objects *shoot.Objects) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	existing, err := c.get(ctx, objects.Shoot.Name)

	switch {
	case failure.Is(err, failure.NotFound):
	case err != nil:
		return err
	case existing.Annotations[shoot.AnnotationRuntimeID] != objects.Shoot.Annotations[shoot.AnnotationRuntimeID]:
		return failure.New(failure.Conflict, "a cluster named %q exists already and is not of this runtime: "+
			"remove it in Gardener, or use another name", objects.Shoot.Name).WithReason(failure.ReasonAlreadyExists, failure.ComponentGardener)
	case existing.DeletionTimestamp != nil:
		return BeingRemoved(existing)
	default:
		objects.Keep(existing)
	}

	if err := c.write(ctx, objects); err != nil || existing == nil {
		return err
	}

	return c.beginAnew(ctx, existing)
}

// Change changes the Shoot, unless it has changed since it was read: then that is failure.Transient. So a replica that was frozen
// before it wrote undoes nothing that has been ordered since.
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

	return c.beginAnew(ctx, read)
}

// BeingRemoved is the error of whoever wants a cluster that goes.
func BeingRemoved(existing *gardencorev1beta1.Shoot) error {
	return failure.New(failure.Conflict, "the cluster %q is being removed in Gardener", existing.Name).
		WithReason(failure.ReasonConflict, failure.ComponentGardener)
}

// write applies the objects in the order in which they need each other.
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

	err = c.way().Apply(ctx, client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner(fieldManager), client.ForceOwnership)

	return explain(err, doing, object.GetName())
}

// beginAnew has Gardener take up a Shoot that it had given up before it was applied.
func (c *Client) beginAnew(ctx context.Context, before *gardencorev1beta1.Shoot) error {
	if !givenUp(before) {
		return nil
	}

	return c.annotate(ctx, before, v1beta1constants.GardenerOperation, v1beta1constants.ShootOperationRetry)
}

// givenUp reports whether Gardener does nothing more about the Shoot unless it is asked, and has not been asked yet.
func givenUp(shoot *gardencorev1beta1.Shoot) bool {
	last := shoot.Status.LastOperation

	return last != nil && last.State == gardencorev1beta1.LastOperationStateFailed && shoot.Status.ObservedGeneration >= shoot.Generation
}

// Tidy removes what stands beside the runtime's Shoot and is not what it refers to now. Without a Shoot that is everything.
func (c *Client) Tidy(ctx context.Context, runtimeID string, present *gardencorev1beta1.Shoot) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	beside := &corev1.ConfigMapList{}
	if err := c.way().List(ctx, beside, client.InNamespace(c.namespace), client.MatchingLabels{shoot.LabelRuntimeID: runtimeID}); err != nil {
		return explain(err, "listing what stands beside the Shoot of runtime %s", runtimeID)
	}

	for i := range beside.Items {
		if each := &beside.Items[i]; each.Name != referred(present) {
			err := explain(c.way().Delete(ctx, each), "deleting the authentication configuration %q", each.Name)
			if err != nil && !failure.Is(err, failure.NotFound) {
				return err
			}
		}
	}

	return nil
}

// Beside lists the runtimes that have something standing beside their Shoots.
func (c *Client) Beside(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	beside := &corev1.ConfigMapList{}
	if err := c.way().List(ctx, beside, client.InNamespace(c.namespace), client.HasLabels{shoot.LabelRuntimeID}); err != nil {
		return nil, explain(err, "listing what stands beside Shoots")
	}

	var runtimeIDs []string
	for _, each := range beside.Items {
		runtimeIDs = append(runtimeIDs, each.Labels[shoot.LabelRuntimeID])
	}

	slices.Sort(runtimeIDs)

	return slices.Compact(runtimeIDs), nil
}

// referred is the name of the ConfigMap that the Shoot refers to, or empty.
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
