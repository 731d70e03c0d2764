package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

// bindingWork is a new operation on a binding. It needs nothing of the instance's request, which may hold secrets.
func bindingWork(kind, id string, instance environment.Instance, binding environment.Binding, at time.Time) (process.New, error) {
	instance.Request = environment.Request{}

	payload, err := json.Marshal(environment.Data{Instance: instance, Binding: binding})
	if err != nil {
		return process.New{}, fmt.Errorf("encoding the data of a new operation: %w", err)
	}

	return process.New{
		ID: id, Kind: kind, InstanceID: environment.BindingKey(binding.InstanceID, binding.BindingID),
		Tenant: instance.GlobalAccountID, Description: "Operation created", Payload: payload, At: at,
	}, nil
}

// endBinding has a binding removed, inside the transaction. What makes it is canceled. It returns the operation that removes it.
func (o Options) endBinding(ctx context.Context, tx storage.Tx, instance environment.Instance, binding environment.Binding) (string, error) {
	now := o.Clock.Now()

	operation, err := bindingWork(environment.KindUnbind, uuid.NewString(), instance, binding, now)
	if err != nil {
		return "", err
	}

	if binding.State == environment.BindingCreating {
		if _, err := o.Operations.CancelOne(ctx, tx, binding.OperationID, "the binding is to be removed", now); err != nil {
			return "", err
		}
	}

	marked, err := o.Bindings.MarkDeleting(ctx, tx, binding, operation.ID)
	if err != nil {
		return "", err
	}

	if !marked {
		return "", errOvertaken
	}

	return operation.ID, o.Operations.Accept(ctx, tx, operation)
}
