package kymacompat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

func load(t *testing.T, path string) *ast.Schema {
	t.Helper()

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	schema, err := gqlparser.LoadSchema(&ast.Source{Name: path, Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}

	return schema
}

// TestOurQueriesFitTheKymaSchema checks that a Kyma Provisioner supports all queries and mutations of our broker, except those
// for the change feed, dashboards, maintenance windows, rollbacks and the take-over of runtimes.
func TestOurQueriesFitTheKymaSchema(t *testing.T) {
	kyma := load(t, filepath.Join("provisioner", "schema.graphql"))

	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "clients", "provisionerclient", "operations.graphql"))
	if err != nil {
		t.Fatal(err)
	}

	// podsCidr and servicesCidr are read only from runtimes that are taken over.
	want := []string{
		"AdoptShootInput", "adoptShoot", "clientData", "consoleURL", "maintenanceWindow", "operationChanges", "podsCidr", "servicesCidr",
	}

	_, problems := gqlparser.LoadQueryWithRules(kyma, string(text), rules.NewDefaultRules())

	var unknown []string

	for _, problem := range problems {
		_, quoted, _ := strings.Cut(problem.Message, `"`)
		name, _, _ := strings.Cut(quoted, `"`)
		unknown = append(unknown, name)
	}

	slices.Sort(unknown)

	if unknown = slices.Compact(unknown); !slices.Equal(unknown, want) {
		t.Errorf("got %v, want only these unknown names: %s", problems, want)
	}
}

// TestContractIsKept compares our schema with the Kyma schema. Our input types may be less strict and our output types
// stricter. No output may contain a value that existing clients cannot decode.
func TestContractIsKept(t *testing.T) {
	kymaSchema := load(t, filepath.Join("provisioner", "schema.graphql"))
	ourSchema := load(t, filepath.Join("..", "..", "provisioner", "schema.graphql"))

	for name, kyma := range kymaSchema.Types {
		if kyma.BuiltIn {
			continue
		}

		ours := ourSchema.Types[name]
		if ours == nil {
			t.Errorf("our schema lacks %s", name)

			continue
		}

		for _, broken := range breaks(kyma, ours) {
			t.Errorf("%s: %s", name, broken)
		}
	}
}

// breaks returns the incompatible differences between our type and the type in the Kyma schema.
func breaks(kyma, ours *ast.Definition) []string {
	var broken []string

	if kyma.Kind != ours.Kind {
		return []string{fmt.Sprintf("its kind was %s and is %s", kyma.Kind, ours.Kind)}
	}

	for _, field := range kyma.Fields {
		kept := ours.Fields.ForName(field.Name)

		switch {
		case kept == nil:
			broken = append(broken, field.Name+" is missing")
		case kyma.Kind == ast.InputObject && !accepts(kept.Type, field.Type), kyma.Kind == ast.Object && !accepts(field.Type, kept.Type):
			broken = append(broken, fmt.Sprintf("%s was %s and is %s", field.Name, field.Type, kept.Type))
		default:
			broken = append(broken, brokenArguments(field, kept)...)
		}
	}

	for _, field := range ours.Fields {
		if ours.Kind == ast.InputObject && kyma.Fields.ForName(field.Name) == nil && field.Type.NonNull {
			broken = append(broken, field.Name+" is now required")
		}
	}

	if values := names(kyma.EnumValues); !slices.Equal(values, names(ours.EnumValues)) {
		broken = append(broken, fmt.Sprintf("its values were %v and are %v: existing clients cannot decode others (operation.PublicKind maps new kinds of operations to them)", values, names(ours.EnumValues)))
	}

	if !slices.Equal(kyma.Types, ours.Types) {
		broken = append(broken, fmt.Sprintf("its members were %v and are %v", kyma.Types, ours.Types))
	}

	return broken
}

func brokenArguments(kyma, ours *ast.FieldDefinition) []string {
	var broken []string

	for _, argument := range kyma.Arguments {
		if kept := ours.Arguments.ForName(argument.Name); kept == nil || !accepts(kept.Type, argument.Type) {
			broken = append(broken, fmt.Sprintf("argument %s of %s is missing or stricter", argument.Name, kyma.Name))
		}
	}

	for _, argument := range ours.Arguments {
		if kyma.Arguments.ForName(argument.Name) == nil && argument.Type.NonNull {
			broken = append(broken, fmt.Sprintf("argument %s of %s is now required", argument.Name, kyma.Name))
		}
	}

	return broken
}

// accepts reports whether every value of the narrow type is also a value of the wide type.
func accepts(wide, narrow *ast.Type) bool {
	if wide.NonNull && !narrow.NonNull {
		return false
	}

	if wide.Elem == nil || narrow.Elem == nil {
		return wide.Elem == nil && narrow.Elem == nil && wide.NamedType == narrow.NamedType
	}

	return accepts(wide.Elem, narrow.Elem)
}

func names(values ast.EnumValueList) []string {
	all := make([]string, 0, len(values))
	for _, value := range values {
		all = append(all, value.Name)
	}

	return all
}
