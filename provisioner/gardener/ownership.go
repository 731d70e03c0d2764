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
	// fieldManager is the field manager of all server-side applies. Because creation and changes share it, a field that a change
	// omits is removed. No other program uses this name: Kyma Provisioner applied whole Shoots as formerManager, and an apply under
	// its name would remove all of its fields that our order omits.
	fieldManager = "environment-broker-provisioner"
	// formerManager is the field manager of Kyma Provisioner, and of this Provisioner in version 0.1.0.
	formerManager = "provisioner"
)

// takeOver moves the fields that version 0.1.0 of this Provisioner has applied as formerManager to fieldManager, and returns the
// Shoot afterwards. Without it, fields that a later order omits would stay, because formerManager still owned them. A Shoot without
// such fields is returned unchanged, without a call. Fields that Kyma Provisioner owns as formerManager stay its own.
//
// The error is a failure.Transient if the Shoot has changed since it was read. takeOver changes nothing but the owners.
func (c *Client) takeOver(ctx context.Context, read *gardencorev1beta1.Shoot) (*gardencorev1beta1.Shoot, error) {
	managed, err := takenOver(read.ManagedFields)
	if err != nil {
		return nil, failure.Wrap(failure.Internal, err, "reading the owners of the fields of the Shoot %q failed", read.Name)
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

// takenOver returns the entries with the fields of version 0.1.0 moved to fieldManager, or nil if there are none. If a replica of
// version 0.1.0 has written the Shoot again while a newer one was running, both have an entry: fieldManager then owns the fields of both, so
// that its next apply decides about all of them.
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

			// Kyma Provisioner never sets this label, and an entry has exactly the fields of the last apply.
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

// fieldsOf decodes the fields of an entry.
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
