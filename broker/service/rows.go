package service

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/bindings"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// rows gives the steps what they need of the broker's tables, with errors that explain themselves.
type rows struct {
	stores
}

// NewRows gives the processes the broker's tables.
func NewRows(db *storage.DB, operations *operations.Store, instances *instances.Store, bindings *bindings.Store) Rows {
	return rows{stores{db: db, operations: operations, instances: instances, bindings: bindings}}
}

// Find returns the instance.
func (r rows) Find(ctx context.Context, id string) (environment.Instance, error) {
	instance, err := r.instances.Get(ctx, r.db.Reader(), id)

	return instance, explain(err, "the instance")
}

// SetRuntime records the runtime of the instance.
func (r rows) SetRuntime(ctx context.Context, instance environment.Instance, runtimeID string) error {
	return explain(r.instances.SetRuntime(ctx, instance, runtimeID), "the runtime of the instance")
}

// Delete removes the instance.
func (r rows) Delete(ctx context.Context, instance environment.Instance) error {
	return explain(r.instances.Delete(ctx, instance), "the instance")
}

// WantsBinding reports whether the binding is there and not being removed.
func (r rows) WantsBinding(ctx context.Context, id string) (bool, error) {
	wanted, err := r.bindings.Wanted(ctx, id)

	return wanted, explain(err, "the binding")
}

// KeepAccess stores the credentials of the binding, if it still wants them.
func (r rows) KeepAccess(ctx context.Context, id string, access environment.Access) (bool, error) {
	kept, err := r.bindings.KeepAccess(ctx, id, access)

	return kept, explain(err, "the access of the binding")
}

// RemoveBinding removes the binding.
func (r rows) RemoveBinding(ctx context.Context, id string) error {
	return explain(r.bindings.Delete(ctx, id), "the binding")
}

// LastProvisioning returns what the newest provisioning of the instance knew when it ended, and the runtime that it had recorded
// even if it ended before it could know that.
func (r rows) LastProvisioning(ctx context.Context, instanceID string) (environment.Data, error) {
	var data environment.Data

	record, err := r.operations.Latest(ctx, r.db.Reader(), instanceID, environment.KindProvision)
	if err != nil {
		return data, explain(err, "the provisioning of the instance")
	}

	payload, err := r.operations.Payload(ctx, r.db.Reader(), record.ID)
	if err != nil {
		return data, explain(err, "the data of the provisioning")
	}

	if err := json.Unmarshal(payload, &data); err != nil {
		return data, failure.Wrap(failure.Internal, err, "the data of the provisioning cannot be read")
	}

	instance, err := r.Find(ctx, instanceID)
	if failure.Of(err).Reason == failure.ReasonNotFound {
		return data, nil // its row is gone: only the end of the deletion is left to do
	}

	if instance.RuntimeID != "" && instance.ShootName == data.Instance.ShootName {
		data.Instance.RuntimeID = instance.RuntimeID
	}

	return data, err
}

// explain says which rows could not be read or written. Nil stays nil.
func explain(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrNotFound):
		return failure.Wrap(failure.Permanent, err, "%s is not in the database any more", what).
			Because(failure.ReasonNotFound, failure.ComponentBrokerDatabase)
	default:
		return failure.Wrap(failure.Transient, err, "%s cannot be read or written: the database does not answer as it should", what).
			Because(failure.ReasonInternal, failure.ComponentBrokerDatabase)
	}
}
