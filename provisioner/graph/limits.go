package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// limits refuses requests that select too much. It visits each fragment once. The complexity limit of gqlgen visits a fragment at
// each spread: a chain of fragments that spread the next one twice takes exponential time.
type limits struct {
	// fields is the maximum number of selected fields. Fields of fragments count at each spread.
	fields int
	// depth is the maximum depth of nested fields. Only introspection can nest without end.
	depth int
	// cost is the maximum cost of all fields; see costs.
	cost int
}

// size is the size of a selection: numbers of fields and costs add up, depth is the maximum.
type size struct{ fields, depth, cost int }

// The costs of fields that call something. Aliases can select a field many times; clients of Kyma Provisioner select each once.
const (
	costOfRow     = 1  // a row of the database is read
	costOfCall    = 10 // another system is called, or something is written
	costOfWaiting = 25 // the request may be held open
	costOfAccess  = 25 // Gardener signs a kubeconfig
)

// costs returns the costs of fields by type and name. Fields that are not listed only copy what another field has read.
func costs() map[string]int {
	return map[string]int{
		"Query.runtimeOperationStatus":          costOfRow,
		"Query.runtimeStatus":                   costOfRow,
		"Query.operationChanges":                costOfWaiting,
		"RuntimeStatus.runtimeConnectionStatus": costOfCall,
		"RuntimeStatus.hibernationStatus":       costOfCall,
		"RuntimeConfig.kubeconfig":              costOfAccess,
	}
}

// costOf returns the cost of a field. Every mutation writes.
func costOf(field *ast.Field) int {
	if field.ObjectDefinition.Name == "Mutation" {
		return costOfCall
	}

	return costs()[field.ObjectDefinition.Name+"."+field.Name]
}

// ExtensionName returns the name of the extension for gqlgen.
func (limits) ExtensionName() string { return "Limits" }

// Validate accepts every schema.
func (limits) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext refuses a request before its execution.
func (l limits) MutateOperationContext(_ context.Context, request *graphql.OperationContext) *gqlerror.Error {
	meter := meter{ceiling: max(l.fields, l.cost) + 1, fragments: map[string]size{}}
	measured := meter.measure(request.Operation.SelectionSet)

	switch {
	case measured.fields > l.fields:
		return gqlerror.Errorf("the request selects more than %d fields", l.fields)
	case measured.depth > l.depth:
		return gqlerror.Errorf("the request nests fields %d deep, at most %d are allowed", measured.depth, l.depth)
	case measured.cost > l.cost:
		return gqlerror.Errorf("the request costs more than %d: a kubeconfig costs %d, operationChanges %d, a mutation, a connection status or "+
			"a hibernation status %d, a runtime or an operation %d; spread it over several requests",
			l.cost, costOfAccess, costOfWaiting, costOfCall, costOfRow)
	default:
		return nil
	}
}

// meter measures selections. It stops counting at its ceiling, so that numbers do not overflow.
type meter struct {
	ceiling   int
	fragments map[string]size
}

// measure returns the size of a selection with its fragments. Directives are ignored: a skipped field counts, since variables
// could enable it.
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

// fragment returns the size of a fragment and measures it once. The validator has refused recursive fragments before.
func (m meter) fragment(fragment *ast.FragmentDefinition) size {
	known, ok := m.fragments[fragment.Name]
	if !ok {
		known = m.measure(fragment.SelectionSet)
		m.fragments[fragment.Name] = known
	}

	return known
}
