package gardener

import (
	"context"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// SetHibernation sets whether the cluster is hibernated, and the given annotations; an annotation with an empty value is removed.
// All other fields of the Shoot stay as they are: the caller's order may differ from the last one that was applied. It returns
// the same errors as Change, and also retries a failed Shoot.
func (c *Client) SetHibernation(ctx context.Context, read *gardencorev1beta1.Shoot, asleep bool, annotations map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	if read.DeletionTimestamp != nil {
		return BeingRemoved(read)
	}

	wanted := read.DeepCopy()
	if wanted.Spec.Hibernation == nil {
		wanted.Spec.Hibernation = &gardencorev1beta1.Hibernation{}
	}

	wanted.Spec.Hibernation.Enabled = &asleep

	for name, value := range annotations {
		if value == "" {
			delete(wanted.Annotations, name)
		} else {
			metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, name, value)
		}
	}

	// A patch changes single fields. A server-side apply would remove the fields that it omits.
	guarded := client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
	if err := c.connection().Patch(ctx, wanted, guarded, client.FieldOwner(fieldManager)); err != nil {
		return explain(err, "changing the hibernation of the Shoot %q", read.Name)
	}

	return c.retryFailed(ctx, read)
}

// removeTrace removes the trace of an earlier operation and returns the updated Shoot. An apply that omits the trace does not remove it
// if SetHibernation has patched it. If there is no trace, removeTrace sends no request and returns the Shoot unchanged.
func (c *Client) removeTrace(ctx context.Context, read *gardencorev1beta1.Shoot) (*gardencorev1beta1.Shoot, error) {
	if read.Annotations[shoot.AnnotationTraceparent] == "" {
		return read, nil
	}

	after := read.DeepCopy()
	delete(after.Annotations, shoot.AnnotationTraceparent)

	guarded := client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})

	return after, explain(c.connection().Patch(ctx, after, guarded), "removing the trace of the Shoot %q", read.Name)
}
