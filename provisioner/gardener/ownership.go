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
// Fields that Kyma Provisioner applied as formerManager keep their owner. takeOver also makes fieldManager the only owner of the dropped
// worker pools; see seized. If nothing changes, it sends no request and returns the Shoot unchanged.
func (c *Client) takeOver(ctx context.Context, read *gardencorev1beta1.Shoot, dropped []string) (*gardencorev1beta1.Shoot, error) {
	managed, err := takenOver(read.ManagedFields)
	if err == nil {
		managed, err = seized(managed, dropped)
	}

	if err != nil {
		return nil, failure.Wrap(failure.Internal, err, "reading the field owners of the Shoot %q failed", read.Name)
	}

	if slices.Equal(managed, read.ManagedFields) {
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

// takenOver returns the entries after moving the fields of an earlier version to fieldManager. If there are no such fields, it returns
// the same entries. During an upgrade of the Provisioner, replicas of both versions may write a Shoot, and each version has an entry.
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
		return entries, nil
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

	if moved[own], err = withFields(moved[own], fields.Union(formerFields)); err != nil {
		return nil, err
	}

	return slices.Delete(moved, former, former+1), nil
}

// seized returns the entries after moving the named worker pools from all other managers to fieldManager. If no other manager owns one of
// them, it returns the same entries. In an adopted Shoot, the program that created the pools still owns them, and an apply removes an item of a list only if
// no other manager owns the item.
func seized(entries []metav1.ManagedFieldsEntry, pools []string) ([]metav1.ManagedFieldsEntry, error) {
	if len(pools) == 0 {
		return entries, nil
	}

	var kept []metav1.ManagedFieldsEntry

	dropped, own := &fieldpath.Set{}, -1
	for _, pool := range pools {
		dropped.Insert(fieldpath.MakePathOrDie("spec", "provider", "workers", fieldpath.KeyByFields("name", pool)))
	}

	moved := false

	for _, entry := range entries {
		if entry.Manager == fieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			own = len(kept)
			kept = append(kept, entry)

			continue
		}

		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, err
		}

		if rest := fields.RecursiveDifference(dropped); !rest.Equals(fields) {
			moved = true

			if rest.Empty() {
				continue
			}

			if entry, err = withFields(entry, rest); err != nil {
				return nil, err
			}
		}

		kept = append(kept, entry)
	}

	if !moved {
		return entries, nil
	}

	if own < 0 {
		own, kept = len(kept), append(kept, metav1.ManagedFieldsEntry{
			Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: gardencorev1beta1.SchemeGroupVersion.String(),
			FieldsType: "FieldsV1",
		})
	}

	fields, err := fieldsOf(kept[own])
	if err != nil {
		return nil, err
	}

	kept[own], err = withFields(kept[own], fields.Union(dropped))

	return kept, err
}

// withFields returns the entry with another set of fields.
func withFields(entry metav1.ManagedFieldsEntry, fields *fieldpath.Set) (metav1.ManagedFieldsEntry, error) {
	raw, err := fields.ToJSON()
	if err != nil {
		return entry, fmt.Errorf("encoding fields: %w", err)
	}

	entry.FieldsV1 = metav1.NewFieldsV1(string(raw))

	return entry, nil
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
