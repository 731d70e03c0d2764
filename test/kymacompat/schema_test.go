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

// TestOurQueriesFitTheKymaSchema has our broker ask a Kyma Provisioner for nothing that it does not know, but for the feed.
func TestOurQueriesFitTheKymaSchema(t *testing.T) {
	was := load(t, filepath.Join("provisioner", "schema.graphql"))

	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "provisionerclient", "operations.graphql"))
	if err != nil {
		t.Fatal(err)
	}

	_, problems := gqlparser.LoadQueryWithRules(was, string(text), rules.NewDefaultRules())
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "operationChanges") {
		t.Errorf("got %v, want that it does not know operationChanges, and nothing else", problems)
	}
}

// TestContractIsKept holds our schema against the Kyma schema. What clients send may have become less strict, what they read may have
// become stricter, and nothing that they read may have a value that they cannot decode.
func TestContractIsKept(t *testing.T) {
	was := load(t, filepath.Join("provisioner", "schema.graphql"))
	is := load(t, filepath.Join("..", "..", "provisioner", "schema.graphql"))

	for name, kyma := range was.Types {
		if kyma.BuiltIn {
			continue
		}

		ours := is.Types[name]
		if ours == nil {
			t.Errorf("%s is gone", name)

			continue
		}

		for _, broken := range breaks(kyma, ours) {
			t.Errorf("%s: %s", name, broken)
		}
	}
}

// breaks returns the incompatible changes of a type.
func breaks(kyma, ours *ast.Definition) []string {
	var broken []string

	if kyma.Kind != ours.Kind {
		return []string{fmt.Sprintf("it was %s and is %s", kyma.Kind, ours.Kind)}
	}

	for _, field := range kyma.Fields {
		kept := ours.Fields.ForName(field.Name)

		switch {
		case kept == nil:
			broken = append(broken, field.Name+" is gone")
		case kyma.Kind == ast.InputObject && !accepts(kept.Type, field.Type), kyma.Kind == ast.Object && !accepts(field.Type, kept.Type):
			broken = append(broken, fmt.Sprintf("%s was %s and is %s", field.Name, field.Type, kept.Type))
		default:
			broken = append(broken, brokenArguments(field, kept)...)
		}
	}

	for _, field := range ours.Fields {
		if ours.Kind == ast.InputObject && kyma.Fields.ForName(field.Name) == nil && field.Type.NonNull {
			broken = append(broken, field.Name+" has become necessary")
		}
	}

	if values := names(kyma.EnumValues); !slices.Equal(values, names(ours.EnumValues)) {
		broken = append(broken, fmt.Sprintf("its values were %v and are %v", values, names(ours.EnumValues)))
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
			broken = append(broken, fmt.Sprintf("argument %s of %s is gone or stricter", argument.Name, kyma.Name))
		}
	}

	for _, argument := range ours.Arguments {
		if kyma.Arguments.ForName(argument.Name) == nil && argument.Type.NonNull {
			broken = append(broken, fmt.Sprintf("argument %s of %s has become necessary", argument.Name, kyma.Name))
		}
	}

	return broken
}

// accepts reports whether everything of the narrow type is of the wide one too.
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
