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
}

// size is how much a selection selects.
type size struct{ fields, depth int }

// ExtensionName is how gqlgen calls the extension.
func (limits) ExtensionName() string { return "Limits" }

// Validate accepts every schema.
func (limits) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext refuses the request before anything of it is executed.
func (l limits) MutateOperationContext(_ context.Context, request *graphql.OperationContext) *gqlerror.Error {
	meter := meter{ceiling: l.fields + 1, fragments: map[string]size{}}
	measured := meter.measure(request.Operation.SelectionSet)

	switch {
	case measured.fields > l.fields:
		return gqlerror.Errorf("the request selects more than %d fields", l.fields)
	case measured.depth > l.depth:
		return gqlerror.Errorf("the request nests fields %d deep, at most %d are allowed", measured.depth, l.depth)
	default:
		return nil
	}
}

// meter measures selections. It counts fields up to its ceiling, so that no number overflows.
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
		case *ast.InlineFragment:
			part = m.measure(selection.SelectionSet)
		case *ast.FragmentSpread:
			part = m.fragment(selection.Definition)
		}

		total.fields = min(total.fields+part.fields, m.ceiling)
		total.depth = max(total.depth, part.depth)
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
