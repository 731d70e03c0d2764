package graph

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/core"
)

// mergeable returns a validation rule: fields that have the same name in the response must be the same field with the same
// arguments. It compares each field only with the first field that has the same name and type, so it takes linear time. Unlike
// the rule of the specification, it does not compare fields of different members of a union: the response contains only one of
// them.
func mergeable() core.Rule {
	return core.Rule{Name: "OverlappingFieldsCanBeMerged", RuleFunc: func(observers *core.Events, report core.AddErrFunc) {
		observers.OnOperation(func(walker *core.Walker, operation *ast.OperationDefinition) {
			merger := merger{fragments: fragmentsOf(walker.Document), report: report}
			merger.merge([]ast.SelectionSet{operation.SelectionSet})
		})
	}}
}

// fragmentsOf returns the fragments of a request, keyed by name.
func fragmentsOf(document *ast.QueryDocument) map[string]*ast.FragmentDefinition {
	fragments := make(map[string]*ast.FragmentDefinition, len(document.Fragments))
	for _, fragment := range document.Fragments {
		fragments[fragment.Name] = fragment
	}

	return fragments
}

// merger merges the selections of one operation.
type merger struct {
	fragments map[string]*ast.FragmentDefinition
	report    core.AddErrFunc
}

// group contains the fields that have the same response name and type in one object of the response.
type group struct {
	first *ast.Field
	inner []ast.SelectionSet
}

// object is one object in the response.
type object struct {
	groups map[string][]*group
	// all contains the groups in the order of their first fields.
	all []*group
	// visited contains the names of the fragments whose fields have been collected.
	visited map[string]bool
}

// merge compares the fields of all selections, which describe the same object in the response. It then compares the fields of the
// objects nested in that object.
func (m merger) merge(selections []ast.SelectionSet) {
	merged := &object{groups: map[string][]*group{}, visited: map[string]bool{}}

	for _, one := range selections {
		m.collect(merged, one)
	}

	for _, group := range merged.all {
		if len(group.inner) > 0 {
			m.merge(group.inner)
		}
	}
}

// collect adds the fields of the selections, and of the fragments in them, to the object.
func (m merger) collect(into *object, selections ast.SelectionSet) {
	for _, selection := range selections {
		switch selection := selection.(type) {
		case *ast.Field:
			m.add(into, selection)
		case *ast.InlineFragment:
			m.collect(into, selection.SelectionSet)
		case *ast.FragmentSpread:
			if fragment := m.fragments[selection.Name]; fragment != nil && !into.visited[selection.Name] {
				into.visited[selection.Name] = true

				m.collect(into, fragment.SelectionSet)
			}
		}
	}
}

// add adds a field to its group, or reports that it conflicts with another field.
func (m merger) add(into *object, field *ast.Field) {
	found, reason := find(into.groups[field.Alias], field)
	if reason != "" {
		m.report(core.Message("Fields %q conflict because %s. Use different aliases on the fields to fetch both if this was intentional.",
			field.Alias, reason), core.At(field.Position))

		return
	}

	if found == nil {
		found = &group{first: field}
		into.groups[field.Alias], into.all = append(into.groups[field.Alias], found), append(into.all, found)
	}

	if len(field.SelectionSet) > 0 {
		found.inner = append(found.inner, field.SelectionSet)
	}
}

// find returns the field's group among the groups with its name, or nil if there is none. If the field conflicts with a group,
// find returns the reason. The number of groups is at most the number of types in a union.
func find(groups []*group, field *ast.Field) (found *group, reason string) {
	for _, group := range groups {
		type1, type2 := group.first.ObjectDefinition, field.ObjectDefinition
		if type1 != type2 && type1 != nil && type2 != nil && !type1.IsAbstractType() && !type2.IsAbstractType() {
			continue
		}

		if reason := difference(group.first, field); reason != "" {
			return nil, reason
		}

		if type1 == type2 {
			found = group
		}
	}

	return found, ""
}

// difference describes why two fields cannot have the same name in the response. It returns an empty string if they can.
func difference(one, other *ast.Field) string {
	if one.Name != other.Name {
		return fmt.Sprintf("%q and %q are different fields", one.Name, other.Name)
	}

	same := len(one.Arguments) == len(other.Arguments)
	given := make(map[string]*ast.Value, len(other.Arguments))

	if same {
		for _, argument := range one.Arguments {
			given[argument.Name] = argument.Value
		}
	}

	for _, argument := range other.Arguments {
		same = same && equalValues(given[argument.Name], argument.Value)
	}

	if !same {
		return "they have differing arguments"
	}

	return ""
}

// equalValues reports whether two argument values are equal. It stops at the first difference.
func equalValues(one, other *ast.Value) bool {
	if one == nil || one.Kind != other.Kind || one.Raw != other.Raw || len(one.Children) != len(other.Children) {
		return false
	}

	for i, child := range one.Children {
		if child.Name != other.Children[i].Name || !equalValues(child.Value, other.Children[i].Value) {
			return false
		}
	}

	return true
}
