package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/environment-broker/environment-broker/internal/tracing"
)

// traced begins the span of a request, named by its first field: clients choose the names of operations, the schema those of fields.
func traced(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	if !graphql.HasOperationContext(ctx) || graphql.GetOperationContext(ctx).Operation == nil {
		return next(ctx) // what is no valid request is no part of a trace
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
