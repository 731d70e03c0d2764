package graph

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"k8s.io/utils/ptr"

	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/orders"
)

// The maximum and default duration of a wait in operationChanges. The maximum is below common proxy timeouts.
const (
	maxWait     = 30 * time.Second
	defaultWait = 20 * time.Second
)

// query resolves the fields of the Query type. Its methods call the service and convert the result to an API type.
type query struct{ service Queries }

// RuntimeStatus resolves Query.runtimeStatus.
func (q query) RuntimeStatus(ctx context.Context, id string) (*model.RuntimeStatus, error) {
	return answered(ctx, queryingCaller, func(caller orders.Caller) (*model.RuntimeStatus, error) {
		status, err := q.service.RuntimeStatus(ctx, caller, id, wantedFields(ctx))

		return partial(ctx, status, err)
	})
}

// answered reads the caller from the headers with the given identify function and calls the service. After an error it returns
// the zero value, which gqlgen encodes as null.
func answered[T any](ctx context.Context, identify func(context.Context) (orders.Caller, error),
	call func(caller orders.Caller) (T, error),
) (T, error) {
	var none T

	caller, err := identify(ctx)
	if err != nil {
		return none, err
	}

	answer, err := call(caller)
	if err != nil {
		return none, explained(ctx, err)
	}

	return answer, nil
}

// partial returns the parts of a runtime that could be read, and adds the error about the other parts to the response. If no
// part could be read, it returns the error.
func partial(ctx context.Context, status orders.RuntimeStatus, err error) (*model.RuntimeStatus, error) {
	if err != nil && status.Operation == nil {
		return nil, err
	}

	if err != nil {
		graphql.AddError(ctx, explained(ctx, err))
	}

	return runtimeStatus(status), nil
}

// RuntimeOperationStatus resolves Query.runtimeOperationStatus.
func (q query) RuntimeOperationStatus(ctx context.Context, id string) (*model.OperationStatus, error) {
	return answered(ctx, queryingCaller, func(caller orders.Caller) (*model.OperationStatus, error) {
		status, err := q.service.OperationStatus(ctx, caller, id)

		return operationStatus(&status), err
	})
}

// operationErrors provides the resolver of OperationStatus.errors.
type operationErrors struct{ service Queries }

// Errors resolves OperationStatus.errors. The resolver of the parent field has checked that the operation belongs to the tenant.
func (o operationErrors) Errors(ctx context.Context, status *model.OperationStatus) ([]*model.Error, error) {
	messages, err := o.service.OperationErrors(ctx, ptr.Deref(status.ID, ""))
	if err != nil {
		return nil, explained(ctx, err)
	}

	errors := make([]*model.Error, 0, len(messages))
	for _, message := range messages {
		errors = append(errors, &model.Error{Message: &message})
	}

	return errors, nil
}

// OperationChanges resolves Query.operationChanges. It needs no tenant: changes contain only IDs, kinds and states, and the
// broker follows the operations of all tenants. A wait below 0 counts as 0, and a wait above maxWait counts as maxWait.
func (q query) OperationChanges(ctx context.Context, after *string, waitSeconds *int) (*model.OperationChanges, error) {
	wait := defaultWait
	if waitSeconds != nil {
		wait = min(max(time.Duration(*waitSeconds)*time.Second, 0), maxWait)
	}

	cursor, changes, err := q.service.Changes(ctx, ptr.Deref(after, ""), wait)
	if err != nil {
		return nil, explained(ctx, err)
	}

	answer := &model.OperationChanges{Cursor: cursor, Operations: make([]*model.OperationChange, 0, len(changes))}
	for _, change := range changes {
		answer.Operations = append(answer.Operations, &model.OperationChange{
			ID: change.ID, RuntimeID: change.RuntimeID, Operation: model.OperationType(change.Kind), State: stateOf(change.State),
		})
	}

	return answer, nil
}

// wantedFields returns the costly parts of a runtime that the request selects. It follows fragments and skips fields that a
// directive excludes. It leaves out the kubeconfig if the client may not get one; permitted adds the error.
func wantedFields(ctx context.Context) orders.RuntimeFields {
	var want orders.RuntimeFields

	operation := graphql.GetOperationContext(ctx)

	for _, field := range graphql.CollectFieldsCtx(ctx, []string{"RuntimeStatus"}) {
		switch field.Name {
		case "runtimeConnectionStatus":
			want.ConnectionStatus = true
		case "consoleURL":
			want.Console = true
		case "hibernationStatus":
			want.Hibernation = true
		case "maintenanceWindow":
			want.Maintenance = true
		case "runtimeConfiguration":
			for _, part := range graphql.CollectFields(operation, field.Selections, []string{"RuntimeConfig"}) {
				want.Kubeconfig = want.Kubeconfig || part.Name == "kubeconfig" && mayAccessClusters(ctx)
			}
		}
	}

	return want
}
