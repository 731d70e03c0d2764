package graph

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/environment-broker/environment-broker/provisioner/graph/model"
	"github.com/environment-broker/environment-broker/provisioner/orders"
)

// The wait of operationChanges.
const (
	maxWait     = 30 * time.Second
	defaultWait = 20 * time.Second
)

// query resolves the fields of type Query.
type query struct{ service Queries }

// RuntimeStatus resolves Query.runtimeStatus.
func (q query) RuntimeStatus(ctx context.Context, id string) (*model.RuntimeStatus, error) {
	caller, err := queryingCaller(ctx)
	if err != nil {
		return nil, err
	}

	status, err := q.service.RuntimeStatus(ctx, caller, id, wantedFields(ctx))

	answer, err := partial(ctx, status, err)

	return answer, explained(ctx, err)
}

// partial returns the known parts of a runtime and adds the error about the others to the answer.
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
	caller, err := queryingCaller(ctx)
	if err != nil {
		return nil, err
	}

	status, err := q.service.OperationStatus(ctx, caller, id)
	if err != nil {
		return nil, explained(ctx, err)
	}

	return operationStatus(&status), nil
}

// OperationChanges resolves Query.operationChanges. It needs no tenant: changes contain only ids, kinds and states, and the
// broker follows the operations of all tenants. The wait is clamped to maxWait.
func (q query) OperationChanges(ctx context.Context, after *string, waitSeconds *int) (*model.OperationChanges, error) {
	wait := defaultWait
	if waitSeconds != nil {
		wait = min(max(time.Duration(*waitSeconds)*time.Second, 0), maxWait)
	}

	cursor, changes, err := q.service.Changes(ctx, valueOf(after), wait)
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

// wantedFields returns which costly parts the request selects, including those in fragments and without those that a directive
// skips.
func wantedFields(ctx context.Context) orders.RuntimeFields {
	var want orders.RuntimeFields

	operation := graphql.GetOperationContext(ctx)

	for _, field := range graphql.CollectFieldsCtx(ctx, []string{"RuntimeStatus"}) {
		switch field.Name {
		case "runtimeConnectionStatus":
			want.ConnectionStatus = true
		case "hibernationStatus":
			want.Hibernation = true
		case "runtimeConfiguration":
			for _, part := range graphql.CollectFields(operation, field.Selections, []string{"RuntimeConfig"}) {
				want.ClusterConfig = want.ClusterConfig || part.Name == "clusterConfig"
				want.Kubeconfig = want.Kubeconfig || part.Name == "kubeconfig"
			}
		}
	}

	return want
}

// valueOf returns "" for nil, since GraphQL arguments may be omitted.
func valueOf(text *string) string {
	if text == nil {
		return ""
	}

	return *text
}
