package broker_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// checks are the functions and methods that check parameters. Their cost depends on the request.
func checks() []string {
	return []string{"Resolve", "ResolveBinding", "plan.Update", "resolve", "resolveEarly", "readProvisionRequest", "readBindRequest"}
}

// TestNoValidationInTransactions parses the package and checks that no function that runs in a transaction checks parameters,
// directly or through other functions. Other writes wait for a transaction: on SQLite all writes, on PostgreSQL writes to the
// same instance.
func TestNoValidationInTransactions(t *testing.T) {
	t.Parallel()

	calls, inTransaction := map[string][]string{}, []string{}

	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}

	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}

		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}

		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
				calls[function.Name.Name] = append(calls[function.Name.Name], callees(function.Body)...)

				if takesTransaction(function.Type) {
					inTransaction = append(inTransaction, function.Name.Name)
				}
			}
		}
	}

	if !slices.Contains(inTransaction, "decideUpdate") || !slices.Contains(calls["update"], "resolve") {
		t.Fatalf("the search must find the decision on updates and its check: %v", inTransaction)
	}

	seen := map[string]bool{}

	for len(inTransaction) > 0 {
		name := inTransaction[0]
		inTransaction = inTransaction[1:]

		if seen[name] {
			continue
		}

		seen[name] = true

		if slices.Contains(checks(), name) {
			t.Errorf("%s runs in a transaction", name)
		}

		inTransaction = append(inTransaction, calls[name]...)
	}
}

// takesTransaction reports whether a function has a parameter of type storage.Tx.
func takesTransaction(signature *ast.FuncType) bool {
	return slices.ContainsFunc(signature.Params.List, func(parameter *ast.Field) bool {
		kind, ok := parameter.Type.(*ast.SelectorExpr)

		return ok && kind.Sel.Name == "Tx"
	})
}

// callees returns the names of the functions and methods that the block calls.
func callees(block *ast.BlockStmt) []string {
	var names []string

	ast.Inspect(block, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}

		switch function := call.Fun.(type) {
		case *ast.Ident:
			names = append(names, function.Name)
		case *ast.SelectorExpr:
			names = append(names, function.Sel.Name)

			if receiver, ok := function.X.(*ast.Ident); ok && (receiver.Name == "plan" || receiver.Name == "target") {
				names = append(names, "plan."+function.Sel.Name)
			}
		}

		return true
	})

	return names
}
