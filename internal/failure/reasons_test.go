package failure_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// TestReasonsAreDocumented checks that Reasons explains every reason constant in the source. The page
// docs/user/errors.md is generated from Reasons.
func TestReasonsAreDocumented(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "failure.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}

	var want, got []string

	ast.Inspect(file, func(node ast.Node) bool {
		spec, isValue := node.(*ast.ValueSpec)
		if !isValue || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}

		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}

		want = append(want, text)

		return true
	})

	for _, each := range failure.Reasons() {
		got = append(got, each.Reason)

		if each.Meaning == "" || each.Remedy == "" {
			t.Errorf("%s has no meaning or no remedy", each.Reason)
		}
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons: -want +got\n%s", diff)
	}
}
