package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// limits is a gqlgen extension that rejects requests with too many fields, too much nesting or too high costs. It replaces the
// complexity limit of gqlgen, which visits a fragment once per spread and therefore needs exponential time for a chain of
// fragments that each spread the next one twice. limits visits each fragment once.
type limits struct {
	// fields is the maximum number of selected fields. The fields of a fragment count at each spread.
	fields int
	// depth is the maximum depth of nested fields. Of our schema's types, only those of introspection refer to themselves and
	// can nest without a limit.
	depth int
	// cost is the maximum total cost of all fields; see costs.
	cost int
}

// size is the size of a selection. Field counts and costs of nested selections add up; depth is their maximum.
type size struct{ fields, depth, cost int }

// The costs of fields that need a query or a call. With aliases, a request can select such a field many times; clients of Kyma
// Provisioner select each field once.
const (
	costOfRow     = 1  // reads a row of the database
	costOfCall    = 10 // calls another system, writes to the database, or reads many rows
	costOfWaiting = 25 // may hold the request open
	costOfAccess  = 25 // makes Gardener sign a kubeconfig
)

// costs returns the costs of fields by type and name. All other fields are free, because they only copy data that a listed field
// has read.
func costs() map[string]int {
	return map[string]int{
		"Query.runtimeOperationStatus":          costOfRow,
		"Query.runtimeStatus":                   costOfRow,
		"Query.operationChanges":                costOfWaiting,
		"Query.runtimes":                        costOfCall,
		"Query.operations":                      costOfCall,
		"RuntimePage.totalCount":                costOfCall,
		"OperationPage.totalCount":              costOfCall,
		"RuntimeStatus.runtimeConnectionStatus": costOfCall,
		"RuntimeStatus.hibernationStatus":       costOfCall,
		"RuntimeConfig.kubeconfig":              costOfAccess,
	}
}

// costOf returns the cost of a field. Every mutation costs as much as a call, because it writes to the database.
func costOf(field *ast.Field) int {
	if field.ObjectDefinition.Name == "Mutation" {
		return costOfCall
	}

	return costs()[field.ObjectDefinition.Name+"."+field.Name]
}

// ExtensionName names the extension for gqlgen.
func (limits) ExtensionName() string { return "Limits" }

// Validate accepts every schema.
func (limits) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext rejects a request that exceeds one of the limits. gqlgen calls it after validation and before execution.
func (l limits) MutateOperationContext(_ context.Context, request *graphql.OperationContext) *gqlerror.Error {
	meter := meter{ceiling: max(l.fields, l.cost) + 1, fragments: map[string]size{}}
	measured := meter.measure(request.Operation.SelectionSet)

	switch {
	case measured.fields > l.fields:
		return gqlerror.Errorf("the request selects more than %d fields", l.fields)
	case measured.depth > l.depth:
		return gqlerror.Errorf("the request nests fields %d deep, at most %d are allowed", measured.depth, l.depth)
	case measured.cost > l.cost:
		return gqlerror.Errorf("the request costs more than %d: a kubeconfig costs %d, operationChanges %d, a mutation, a list, its total, a connection "+
			"status or a hibernation status %d, a runtime or an operation %d; spread it over several requests",
			l.cost, costOfAccess, costOfWaiting, costOfCall, costOfRow)
	default:
		return nil
	}
}

// meter measures the selections of one request. It stops counting at its ceiling, because nested fragments can multiply to a
// number that overflows an int. It caches the sizes of fragments by name.
type meter struct {
	ceiling   int
	fragments map[string]size
}

// measure returns the size of a selection with its fragments. It ignores directives: a field that is skipped at run time also
// counts.
func (m meter) measure(selections ast.SelectionSet) size {
	var total size

	for _, selection := range selections {
		var part size

		switch selection := selection.(type) {
		case *ast.Field:
			part = m.measure(selection.SelectionSet)
			part.fields++
			part.depth++
			part.cost += costOf(selection)
		case *ast.InlineFragment:
			part = m.measure(selection.SelectionSet)
		case *ast.FragmentSpread:
			part = m.fragment(selection.Definition)
		}

		total.fields = min(total.fields+part.fields, m.ceiling)
		total.depth = max(total.depth, part.depth)
		total.cost = min(total.cost+part.cost, m.ceiling)
	}

	return total
}

// fragment returns the size of a fragment, which it measures at the first spread. The recursion ends because gqlgen's validator
// has rejected recursive fragments.
func (m meter) fragment(fragment *ast.FragmentDefinition) size {
	known, ok := m.fragments[fragment.Name]
	if !ok {
		known = m.measure(fragment.SelectionSet)
		m.fragments[fragment.Name] = known
	}

	return known
}
