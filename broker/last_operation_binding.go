package broker

import (
	"errors"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// pollBinding handles GET …/service_bindings/{binding_id}/last_operation.
func (a *api) pollBinding(r request) (httpserver.Response, error) {
	record, err := snapshot(r.Context(), a, func(tx storage.Tx) (process.Record, error) { return a.bindingOperationOf(r, tx) })

	return a.polled(r, record, err, notFound(textNoBinding))
}

// bindingOperationOf is operationOf for an operation on a binding. It returns storage.ErrNotFound if the binding of the operation no
// longer exists, even if another binding uses its ID now. This does not apply to unfinished operations, to successful removals, or
// to failed operations that the platform polls by their ID.
func (a *api) bindingOperationOf(r request, tx storage.Tx) (process.Record, error) {
	record, err := a.namedOperation(r, tx)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return a.currentBindingOperation(r, tx)
	case err != nil:
		return process.Record{}, err
	case record.State != process.Succeeded, record.Kind == environment.KindUnbind:
		return record, nil
	}

	binding, err := a.Bindings.Newest(r.Context(), tx, r.instanceID, r.bindingID)
	if err == nil && record.CreatedAt.Before(binding.CreatedAt) {
		err = storage.ErrNotFound // the operation belongs to an earlier binding
	}

	return record, err
}

// currentBindingOperation is bindingOperationOf for a poll without the ID of an operation. If the binding exists and is not being
// removed, the operation that creates it is returned, because a newer operation with the binding's key can belong to an earlier
// binding, see operationOn. An operation on a binding of an earlier instance with the same ID is not found.
func (a *api) currentBindingOperation(r request, tx storage.Tx) (process.Record, error) {
	ctx := r.Context()

	owner, id, err := a.lookup(ctx, tx, r.instanceID)
	if err != nil {
		return process.Record{}, err
	}

	r.instanceID = id

	binding, err := a.Bindings.Newest(ctx, tx, r.instanceID, r.bindingID)
	exists := err == nil

	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return process.Record{}, err
	}

	operation := r.query.Get("operation")
	if exists && binding.State != environment.BindingDeleting && (operation == "" || operation == environment.KindBind) {
		return a.Operations.Get(ctx, tx, binding.OperationID)
	}

	record, err := a.newestOperation(r, tx, environment.BindingKinds()...)
	unfinished, removed := !record.State.Terminal(), record.State == process.Succeeded && record.Kind == environment.KindUnbind

	switch {
	case err != nil:
		return process.Record{}, err
	case record.CreatedAt.Before(owner.CreatedAt):
		return process.Record{}, storage.ErrNotFound
	case unfinished, removed, exists && !record.CreatedAt.Before(binding.CreatedAt):
		return record, nil
	default:
		return process.Record{}, storage.ErrNotFound
	}
}
