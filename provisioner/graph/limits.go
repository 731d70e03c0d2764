package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// The limits of a request. Data queries have a depth of at most 6; the playground's introspection query has a depth of 13 and
// selects about 200 fields.
const (
	maxBody   = 1 << 20 // bytes
	maxTokens = 10_000
	// maxName is the maximum length of names, including aliases, in bytes. It is small because responses repeat the names.
	maxName = 64
	// maxParts is the maximum number of operations in a request and, separately, of fragments, of variables and of directives.
	maxParts  = 200
	maxFields = 1000
	maxDepth  = 20
	maxCost   = 100 // sum of the costs of all fields
)

// limits bounds the selections in a request. Before validation, admission checks the number of fields and the depth. After
// validation, limits checks the costs, as a gqlgen extension. It replaces gqlgen's complexity limit, which visits a fragment once
// per spread. If each fragment of a chain spreads the next one twice, that takes exponential time. limits visits each fragment
// once.
type limits struct {
	// fields is the maximum number of selected fields and fragments. The fields of a fragment count once per spread.
	fields int
	// depth is the maximum depth of nested fields. Of our schema's types, only the introspection types refer to themselves and can
	// nest without a limit.
	depth int
	// cost is the maximum total cost of all fields of an operation; see costs.
	cost int
}

// size is the size of a selection, including its nested selections: the number of fields, the depth of the deepest field, and the
// total cost.
type size struct{ fields, depth, cost int }

// The costs of fields that need a query or a call. With aliases, a request can select such a field many times; clients of Kyma
// Provisioner select each field once.
const (
	costOfRow     = 1  // reads a row of the database
	costOfCall    = 10 // calls another system, writes to the database, or reads many rows
	costOfWaiting = 25 // may hold the request open
	costOfAccess  = 25 // makes Gardener sign a kubeconfig
)

// costs returns the costs of fields, keyed by type and name. All other fields are free, because they only copy data that a listed
// field has read.
func costs() map[string]int {
	return map[string]int{
		"Query.runtimeOperationStatus":          costOfRow,
		"Query.runtimeStatus":                   costOfRow,
		"Query.operationChanges":                costOfWaiting,
		"Query.runtimes":                        costOfCall,
		"Query.operations":                      costOfCall,
		"OperationStatus.errors":                costOfCall,
		"RuntimePage.totalCount":                costOfCall,
		"OperationPage.totalCount":              costOfCall,
		"RuntimeStatus.runtimeConnectionStatus": costOfCall,
		"RuntimeStatus.hibernationStatus":       costOfCall,
		"RuntimeStatus.maintenanceWindow":       costOfCall,
		"RuntimeStatus.consoleURL":              costOfCall,
		"RuntimeConfig.kubeconfig":              costOfAccess,
	}
}

// ExtensionName implements graphql.HandlerExtension.
func (limits) ExtensionName() string { return "Limits" }

// Validate implements graphql.HandlerExtension. It accepts every schema.
func (limits) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext rejects an operation whose cost exceeds the limit. gqlgen calls it after validation and before execution.
func (l limits) MutateOperationContext(_ context.Context, request *graphql.OperationContext) *gqlerror.Error {
	if l.meter(request.Doc).measure(request.Operation.SelectionSet).cost > l.cost {
		return gqlerror.Errorf("the request costs more than %d. A kubeconfig costs %d; operationChanges costs %d; a mutation, a list, a total count, the errors of an "+
			"operation, a connection status, a hibernation status, a maintenance window or a console costs %d; a runtime or an operation costs %d. "+
			"Split the request into several requests",
			l.cost, costOfAccess, costOfWaiting, costOfCall, costOfRow)
	}

	return nil
}

// check rejects a parsed request that exceeds a limit other than the cost. The request need not be valid.
func (l limits) check(document *ast.QueryDocument) *gqlerror.Error {
	parts := parts{}
	parts.document(document)

	if problem := parts.problem(); problem != "" {
		return gqlerror.Errorf("the request has %s", problem)
	}

	meter := l.meter(document)

	var total size

	for _, operation := range document.Operations {
		total = total.plus(meter.measure(operation.SelectionSet), meter.ceiling)
	}

	// Validation also visits fragments that no operation spreads.
	for _, fragment := range document.Fragments {
		total.depth = max(total.depth, meter.fragment(fragment.Name).depth)
	}

	switch {
	case *meter.recursive != "":
		problem := gqlerror.Errorf("Cannot spread fragment %q within itself.", *meter.recursive)
		errcode.Set(problem, errcode.ValidationFailed)

		return problem
	case total.fields > l.fields:
		return gqlerror.Errorf("the request selects more than %d fields", l.fields)
	case total.depth > l.depth:
		return gqlerror.Errorf("the request nests fields %d levels deep, but at most %d are allowed", total.depth, l.depth)
	default:
		return nil
	}
}

func (l limits) meter(document *ast.QueryDocument) meter {
	return meter{
		ceiling: max(l.fields, l.cost) + 1, costs: costs(), definitions: fragmentsOf(document),
		fragments: map[string]*size{}, recursive: new(string),
	}
}

// meter measures the selections of one request. It stops counting at its ceiling, because nested fragments can multiply to a
// number that overflows an int.
type meter struct {
	ceiling     int
	costs       map[string]int
	definitions map[string]*ast.FragmentDefinition
	// fragments caches the sizes of fragments, keyed by name. The size is nil while the fragment is being measured.
	fragments map[string]*size
	// recursive is the name of a fragment that spreads itself, or empty.
	recursive *string
}

// plus returns the combined size of two selections on the same object.
func (s size) plus(other size, ceiling int) size {
	return size{fields: min(s.fields+other.fields, ceiling), depth: max(s.depth, other.depth), cost: min(s.cost+other.cost, ceiling)}
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
			part.cost += m.costOf(selection)
		case *ast.InlineFragment:
			part = m.measure(selection.SelectionSet)
			part.fields++
		case *ast.FragmentSpread:
			part = m.fragment(selection.Name)
			part.fields++
		}

		total = total.plus(part, m.ceiling)
	}

	return total
}

// costOf returns the cost of a field. A mutation costs as much as a call, because it writes to the database. Before validation, fields
// have no cost, because their types are unknown.
func (m meter) costOf(field *ast.Field) int {
	switch {
	case field.ObjectDefinition == nil:
		return 0
	case field.ObjectDefinition.Name == "Mutation":
		return costOfCall
	default:
		return m.costs[field.ObjectDefinition.Name+"."+field.Name]
	}
}

// fragment returns the size of a fragment and caches it at the first spread. The size is zero for a fragment that does not exist, and for
// the inner spread of a fragment that spreads itself.
func (m meter) fragment(name string) size {
	known, measured := m.fragments[name]
	if measured && known == nil {
		*m.recursive = name

		return size{}
	}

	if !measured {
		known, m.fragments[name] = &size{}, nil

		if definition := m.definitions[name]; definition != nil {
			*known = m.measure(definition.SelectionSet)
		}

		m.fragments[name] = known
	}

	return *known
}
