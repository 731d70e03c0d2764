package graph

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/environment-broker/environment-broker/provisioner/graph/generated"
)

// Schema returns the schema of the API.
func Schema() *ast.Schema { return generated.NewExecutableSchema(generated.Config{}).Schema() }

// Admit returns a function that parses and validates a request like the server.
func Admit() func(ctx context.Context, query string) (*ast.QueryDocument, gqlerror.List) {
	return newAdmission(Schema(), limits{fields: maxFields, depth: maxDepth, cost: maxCost}).document
}
