// Package fakegraphql helps simulated servers implement GraphQL. It validates requests against a schema and selects the requested
// fields from values that are maps. The servers resolve the fields themselves, without generated code. To simulate another part
// of GraphQL, such as introspection, extend Schema.
package fakegraphql

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Schema validates requests. Its methods can be called concurrently.
type Schema struct{ executor *executor.Executor }

// NewSchema parses a schema. The name identifies the schema in errors.
func NewSchema(name, text string) (*Schema, error) {
	parsed, err := gqlparser.LoadSchema(&ast.Source{Name: name, Input: text})
	if err != nil {
		return nil, fmt.Errorf("parsing the schema %s: %w", name, err)
	}

	return &Schema{executor: executor.New(executable{parsed: parsed})}, nil
}

// executable passes the parsed schema to gqlgen's executor, which parses and validates requests.
type executable struct {
	graphql.ExecutableSchema

	parsed *ast.Schema
}

// Schema implements graphql.ExecutableSchema. Validate does not call the other methods.
func (e executable) Schema() *ast.Schema { return e.parsed }

// Validate returns the operation of a request, and its variables with their default values.
func (s *Schema) Validate(ctx context.Context, request graphql.RawParams) (*graphql.OperationContext, gqlerror.List) {
	return s.executor.CreateOperationContext(graphql.StartOperationTrace(ctx), &request)
}

// Select returns the selected fields of a value, renamed to their aliases. A value is a map, a list of maps or a scalar; a nil
// map becomes null. If the selection is empty, a map is a scalar in the schema and is returned whole. If a map has a __typename,
// fragments for other types are skipped.
func Select(operation *graphql.OperationContext, value any, selection ast.SelectionSet) any {
	switch value := value.(type) {
	case []any:
		selected := make([]any, 0, len(value))
		for _, element := range value {
			selected = append(selected, Select(operation, element, selection))
		}

		return selected
	case map[string]any:
		if value == nil {
			return nil
		}

		if len(selection) == 0 {
			return value
		}

		var satisfies []string
		if name, typed := value["__typename"].(string); typed {
			satisfies = []string{name}
		}

		selected := map[string]any{}
		for _, field := range graphql.CollectFields(operation, selection, satisfies) {
			selected[field.Alias] = Select(operation, value[field.Name], field.Selections)
		}

		return selected
	default:
		return value
	}
}
