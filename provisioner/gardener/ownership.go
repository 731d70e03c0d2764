package gardener

import (
	"context"
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

const (
	// fieldManager is the field manager of all server-side applies. The creation and later changes of a Shoot share it, so the
	// API server removes the fields that a change omits. It differs from formerManager, with which Kyma Provisioner
	// applied whole Shoots: an apply under that name would remove every field that Kyma Provisioner set and this Provisioner does not.
	fieldManager = "environment-broker-provisioner"
	// formerManager is the field manager of Kyma Provisioner, and of earlier versions of this Provisioner.
	formerManager = "provisioner"
)

// takeOver makes fieldManager the owner of the fields that an earlier version of this Provisioner applied as formerManager, and
// returns the updated Shoot. Otherwise a field that a later order omits would remain, because formerManager would still own it.
// If there are no such fields, takeOver sends no request and returns the Shoot unchanged. Fields that Kyma Provisioner applied as
// formerManager keep their owner.
func (c *Client) takeOver(ctx context.Context, read *gardencorev1beta1.Shoot) (*gardencorev1beta1.Shoot, error) {
	managed, err := takenOver(read.ManagedFields)
	if err != nil {
		return nil, failure.Wrap(failure.Internal, err, "reading the field owners of the Shoot %q failed", read.Name)
	}

	if managed == nil {
		return read, nil
	}

	after := read.DeepCopy()
	after.ManagedFields = managed
	guarded := client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})

	if err := c.connection().Patch(ctx, after, guarded); err != nil {
		return nil, explain(err, "taking over the fields of the Shoot %q", read.Name)
	}

	return after, nil
}

// takenOver returns the entries after moving the fields of an earlier version to fieldManager, or nil if there are no such
// fields. During an upgrade of the Provisioner, replicas of both versions may write a Shoot, and each version has an entry.
// fieldManager then owns the fields of both entries, and its next apply removes those that the order omits.
func takenOver(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	former, own := -1, -1

	var formerFields *fieldpath.Set

	for i, entry := range entries {
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			continue
		}

		switch entry.Manager {
		case fieldManager:
			own = i
		case formerManager:
			fields, err := fieldsOf(entry)
			if err != nil {
				return nil, err
			}

			// An entry with this label comes from an earlier version of this Provisioner: Kyma Provisioner never sets the label,
			// and an entry contains exactly the fields of the manager's last apply.
			if fields.Has(fieldpath.MakePathOrDie("metadata", "labels", shoot.LabelRuntimeID)) {
				former, formerFields = i, fields
			}
		}
	}

	if former < 0 {
		return nil, nil
	}

	moved := slices.Clone(entries)
	if own < 0 {
		moved[former].Manager = fieldManager

		return moved, nil
	}

	fields, err := fieldsOf(moved[own])
	if err != nil {
		return nil, err
	}

	raw, err := fields.Union(formerFields).ToJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding fields: %w", err)
	}

	moved[own].FieldsV1 = metav1.NewFieldsV1(string(raw))

	return slices.Delete(moved, former, former+1), nil
}

// fieldsOf decodes the set of fields that an entry's manager owns.
func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	fields := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return fields, nil
	}

	if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("decoding the fields of manager %s: %w", entry.Manager, err)
	}

	return fields, nil
}
