package graph

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/environment-broker/environment-broker/internal/httpserver/bounds"
)

// parts contains the number of variables, directives, operations and fragments in a request, each of which is limited. Some
// validation rules take time proportional to the product of two of these counts.
type parts struct {
	variables, directives int
	operations, fragments int
	// longName is set if a name is longer than maxName. deepValue is set if lists and objects in a value are nested more deeply than
	// bounds.MaxDepth.
	longName, deepValue bool
}

// problem returns the rest of the sentence "the request has …" for the first exceeded limit, or an empty string.
func (p *parts) problem() string {
	for _, part := range []struct {
		count int
		names string
	}{{p.operations, "operations"}, {p.fragments, "fragments"}, {p.variables, "variables"}, {p.directives, "directives"}} {
		if part.count > maxParts {
			return fmt.Sprintf("more than %d %s", maxParts, part.names)
		}
	}

	switch {
	case p.longName:
		return fmt.Sprintf("a name of more than %d bytes", maxName)
	case p.deepValue:
		return fmt.Sprintf("a value whose lists and objects are nested more than %d levels deep", bounds.MaxDepth)
	default:
		return ""
	}
}

// name sets longName if one of the names is too long.
func (p *parts) name(names ...string) {
	for _, name := range names {
		p.longName = p.longName || len(name) > maxName
	}
}

// document counts the parts of the request. It visits each fragment once.
func (p *parts) document(document *ast.QueryDocument) {
	p.operations, p.fragments = len(document.Operations), len(document.Fragments)

	for _, operation := range document.Operations {
		p.name(operation.Name)
		p.list(operation.Directives)
		p.variables += len(operation.VariableDefinitions)

		for _, variable := range operation.VariableDefinitions {
			p.name(variable.Variable, variable.Type.Name())
			p.list(variable.Directives)
			p.value(variable.DefaultValue, 0)
		}

		p.selections(operation.SelectionSet)
	}

	for _, fragment := range document.Fragments {
		p.name(fragment.Name, fragment.TypeCondition)
		p.list(fragment.Directives)
		p.selections(fragment.SelectionSet)
	}
}

// selections counts the directives in selections and checks the names and values.
func (p *parts) selections(selections ast.SelectionSet) {
	for _, selection := range selections {
		switch selection := selection.(type) {
		case *ast.Field:
			p.name(selection.Alias, selection.Name)
			p.arguments(selection.Arguments)
			p.list(selection.Directives)
			p.selections(selection.SelectionSet)
		case *ast.InlineFragment:
			p.name(selection.TypeCondition)
			p.list(selection.Directives)
			p.selections(selection.SelectionSet)
		case *ast.FragmentSpread:
			p.name(selection.Name)
			p.list(selection.Directives)
		}
	}
}

// list counts directives, and checks their names and arguments.
func (p *parts) list(directives ast.DirectiveList) {
	p.directives += len(directives)

	for _, directive := range directives {
		p.name(directive.Name)
		p.arguments(directive.Arguments)
	}
}

// arguments checks the names and values of arguments.
func (p *parts) arguments(arguments ast.ArgumentList) {
	for _, argument := range arguments {
		p.name(argument.Name)
		p.value(argument.Value, 0)
	}
}

// value checks the names in a value and its depth. It does not limit the length of strings.
func (p *parts) value(value *ast.Value, depth int) {
	if p.deepValue = p.deepValue || depth > bounds.MaxDepth; value == nil || p.deepValue {
		return
	}

	if value.Kind == ast.Variable || value.Kind == ast.EnumValue {
		p.name(value.Raw)
	}

	for _, child := range value.Children {
		p.name(child.Name)
		p.value(child.Value, depth+1)
	}
}
