package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/environment-broker/environment-broker/internal/tracing"
)

// traced starts the span of a request. It is named after the first field, because clients choose the names of operations freely.
func traced(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	if !graphql.HasOperationContext(ctx) || graphql.GetOperationContext(ctx).Operation == nil {
		return next(ctx) // an invalid request has no span
	}

	operation := graphql.GetOperationContext(ctx).Operation
	name := string(operation.Operation)

	if field, ok := operation.SelectionSet[0].(*ast.Field); ok {
		name += " " + field.Name
	}

	ctx, end := tracing.Begin(ctx, name, operation.Operation == ast.Mutation)
	response := next(ctx)

	if len(response.Errors) > 0 {
		end(response.Errors[0].Message)
	} else {
		end("")
	}

	return response
}
