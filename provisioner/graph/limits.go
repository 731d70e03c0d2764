package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// limits refuses requests that select too much. gqlgen's own complexity limit walks a fragment each time it is spread, so a
// chain of fragments that each spread the next one twice keeps it busy for ever; limits looks at each fragment once.
type limits struct {
	// fields is how many fields a request may select, those of fragments counted at each spread.
	fields int
	// depth is how deep fields may be nested. Only introspection can be nested without end.
	depth int
	// cost is how much the fields of a request may cost together; see costs.
	cost int
}

// size is how much a selection selects.
type size struct{ fields, depth, cost int }

// What fields cost that have more done than a look at what is there already. Aliases ask for a field again and again, and former clients
// ask for each of them once.
const (
	costOfRow     = 1  // a row of the database is read
	costOfCall    = 10 // another system is called, or something is written
	costOfWaiting = 25 // the request may be held open
	costOfAccess  = 25 // a kubeconfig is made, which Gardener signs
)

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

// costOf is what the field costs. Every mutation writes.
func costOf(field *ast.Field) int {
	if field.ObjectDefinition.Name == "Mutation" {
		return costOfCall
	}

	return costs()[field.ObjectDefinition.Name+"."+field.Name]
}

// ExtensionName is how gqlgen calls the extension.
func (limits) ExtensionName() string { return "Limits" }

// Validate accepts every schema.
func (limits) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext refuses the request before anything of it is executed.
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

// meter measures selections. It counts fields and costs up to its ceiling, so that no number overflows.
type meter struct {
	ceiling   int
	fragments map[string]size
}

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

// fragment relies on the validator, which lets no fragment through that spreads itself.
func (m meter) fragment(fragment *ast.FragmentDefinition) size {
	known, ok := m.fragments[fragment.Name]
	if !ok {
		known = m.measure(fragment.SelectionSet)
		m.fragments[fragment.Name] = known
	}

	return known
}
