package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// reasonRestored is the reason for a restoration, in timelines and in the audit log.
const reasonRestored = "restored from the data of the runtime"

// Restore implements operatorserver.Differences. It adds the row of an instance whose runtime exists in the Provisioner, with a
// succeeded operation and the records of its objects in other systems. It rejects the runtime of a leftover, because the instance was
// deleted or suspended, and all other differences, because only the Provisioner can restore the records that they concern.
func (c *Comparer) Restore(ctx context.Context, difference operatorapi.Difference) error {
	if difference.Kind != operatorapi.DifferenceKindRuntimeWithoutInstance {
		return failure.New(failure.Conflict, "only the Provisioner can restore this record: run 'ebctl provisioner reconcile'")
	}

	owners, err := c.owners(ctx, []string{difference.ShootName})
	if err != nil {
		return err
	}

	if owner, owned := owners[difference.ShootName]; owned && owner.Instance.RuntimeID == difference.RuntimeID {
		return nil // restored by a concurrent request
	}

	instance, err := c.lost(ctx, difference.RuntimeID)
	if err != nil {
		return err
	}

	objects, err := c.Systems.objectsOf(ctx, instance)
	if err != nil {
		return err
	}

	err = c.DB.InTx(ctx, func(tx storage.Tx) error { return c.insert(ctx, tx, instance, objects) })
	if storage.IsDuplicate(err) {
		return failure.Wrap(failure.Conflict, err,
			"another instance now has the ID or the Shoot name of instance %s, or is the only instance that its plan allows for the account", instance.ID)
	}

	return err
}

// insert adds the instance's row, a succeeded operation, the records of its objects in other systems, and the entry in the audit log. The
// broker reads the runtime's address later.
func (c *Comparer) insert(ctx context.Context, tx storage.Tx, instance environment.Instance, objects []environment.OutsideObject) error {
	now := c.Clock.Now()

	insertion, err := c.Instances.Insertion(instance)
	if err == nil {
		err = storage.Apply(ctx, tx, insertion)
	}

	if err != nil {
		return err
	}

	// A concurrent deletion has removed the row only now. Its transaction has added the leftover.
	if err := c.checkLeftover(ctx, tx, instance); err != nil {
		return err
	}

	// The insertion omits the columns that only updates change.
	if err := c.Instances.Update(ctx, tx, instance); err != nil {
		return err
	}

	operation, err := environment.NewOperation(environment.KindProvision, instance, nil, instance.CreatedAt)
	if err != nil {
		return err
	}

	data := environment.Data{Instance: instance, Provisioning: operation.ID, Ordered: true}
	data.Instance.Request = environment.Request{} // the row contains it

	if operation.Payload, err = json.Marshal(data); err != nil {
		return fmt.Errorf("encoding a restored operation: %w", err)
	}

	operation.Why = reasonRestored
	if err := c.Operations.InsertSucceeded(ctx, tx, operation); err != nil {
		return err
	}

	if err := c.Endpoints.Add(ctx, tx, instance.ID, now); err != nil {
		return err
	}

	for _, object := range objects {
		if err := c.Objects.Insert(ctx, tx, object, now); err != nil {
			return err
		}
	}

	return c.Recorder.Record(ctx, tx, auditlog.Entry{
		Action: auditlog.ActionRestore, InstanceID: instance.ID, Status: http.StatusOK, Reason: reasonRestored, After: instance.Shown(),
	})
}
