package broker

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// endBinding has a binding removed, inside the transaction. What makes it is canceled. It returns the operation that removes it.
func (o Options) endBinding(ctx context.Context, tx storage.Tx, instance environment.Instance, binding environment.Binding) (string, error) {
	now := o.Clock.Now()

	operation, err := environment.NewBindingOperation(environment.KindUnbind, uuid.NewString(), instance, binding, now)
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

	entry := auditlog.Entry{Before: binding.Shown()}
	if operation, err = o.orderedBinding(ctx, tx, operation, binding, entry); err != nil {
		return "", err
	}

	return operation.ID, o.Operations.Accept(ctx, tx, operation)
}

// orderedBinding keeps with an operation on a binding who orders it, and writes that to the audit trail, beside what else was done to the
// instance.
func (o Options) orderedBinding(ctx context.Context, tx storage.Tx, operation process.New, binding environment.Binding, entry auditlog.Entry,
) (process.New, error) {
	operation.OrderedBy, operation.Trace = audit.ActorOf(ctx).Name(), tracing.Carry(ctx)
	entry.Action, entry.OperationID, entry.Status = operation.Kind, operation.ID, http.StatusAccepted
	entry.InstanceID, entry.BindingID = binding.InstanceID, binding.BindingID

	return operation, o.Trail.Record(ctx, tx, entry)
}
