package graph

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

// How long operationChanges may wait.
const (
	maxWait     = 30 * time.Second
	defaultWait = 20 * time.Second
)

// query resolves the fields of type Query.
type query struct {
	runtimes Runtimes
}

// RuntimeStatus describes a runtime. When only a part of it can be had, the answer holds that part and the error.
func (q query) RuntimeStatus(ctx context.Context, id string) (*model.RuntimeStatus, error) {
	caller, err := queryingCaller(ctx)
	if err != nil {
		return nil, err
	}

	status, err := q.runtimes.RuntimeStatus(ctx, caller, id, wantedFields(ctx))

	return described(ctx, status, err)
}

// described is what is told of a runtime, beside the error that kept the rest back.
func described(ctx context.Context, status model.RuntimeStatus, err error) (*model.RuntimeStatus, error) {
	if err != nil && status.LastOperationStatus == nil {
		return nil, explained(ctx, err)
	}

	if err != nil {
		graphql.AddError(ctx, explained(ctx, err))
	}

	return completed(status), nil
}

// RuntimeOperationStatus tells how far an operation is.
func (q query) RuntimeOperationStatus(ctx context.Context, id string) (*model.OperationStatus, error) {
	caller, err := queryingCaller(ctx)
	if err != nil {
		return nil, err
	}

	status, err := q.runtimes.OperationStatus(ctx, caller, id)
	if err != nil {
		return nil, explained(ctx, err)
	}

	return withLastError(&status), nil
}

// OperationChanges waits for changes of any tenant's operations.
func (q query) OperationChanges(ctx context.Context, after *string, waitSeconds *int) (*model.OperationChanges, error) {
	wait := defaultWait
	if waitSeconds != nil {
		wait = min(max(time.Duration(*waitSeconds)*time.Second, 0), maxWait)
	}

	cursor, changes, err := q.runtimes.Changes(ctx, valueOf(after), wait)
	if err != nil {
		return nil, explained(ctx, err)
	}

	answer := &model.OperationChanges{Cursor: cursor, Operations: make([]*model.OperationChange, 0, len(changes))}
	for _, change := range changes {
		answer.Operations = append(answer.Operations, &change)
	}

	return answer, nil
}

// wantedFields tells which costly parts the query selects.
func wantedFields(ctx context.Context) RuntimeFields {
	var want RuntimeFields

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

func valueOf(text *string) string {
	if text == nil {
		return ""
	}

	return *text
}
