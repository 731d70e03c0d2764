package bench

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// page is the path of the page that all benchmarks write, except the benchmarks of the large database.
const page = "../../docs/operator/benchmarks.md"

// named is a figure in the code: a pattern that matches the names of its rows, and the figure's position in the source.
type named struct {
	pattern  *regexp.Regexp
	position string
}

// TestPageHasAllRows compares the rows of the page with the figures in the code: each figure must have a row, and each row a
// figure. A row that has not been measured yet contains the command that measures it.
func TestPageHasAllRows(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}

	var rows []string

	for line := range strings.Lines(string(content)) {
		cells := strings.Split(line, " | ")
		if name, is := strings.CutPrefix(cells[0], "| "); is && name != "figure" {
			rows = append(rows, name)
		}

		if strings.Contains(line, "not measured") && !strings.Contains(line, "`go test -run '^$' -bench '/") {
			t.Errorf("the row names no command: %s", line)
		}
	}

	figures := figuresOfCode(t)
	has := make([]bool, len(figures))

	for _, row := range rows {
		found := false

		for i, figure := range figures {
			if figure.pattern.MatchString(row) {
				found, has[i] = true, true
			}
		}

		if !found {
			t.Errorf("the page has the row %q, but the code has no such figure", row)
		}
	}

	for i, figure := range figures {
		if !has[i] {
			t.Errorf("%s: the page has no row that matches %s: run the scenario, or add a row that is not measured, with the command", figure.position, figure.pattern)
		}
	}

	if len(rows) < 80 || len(figures) < 60 {
		t.Errorf("found %d rows and %d figures: the test looks for the wrong ones", len(rows), len(figures))
	}
}

// figuresOfCode returns the figures of all scenarios except the one with the large database, which has a page of its own.
func figuresOfCode(t *testing.T) []named {
	t.Helper()

	paths, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}

	var figures []named

	for _, path := range paths {
		if strings.HasPrefix(path, "large_") {
			continue
		}

		files := token.NewFileSet()

		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}

		for _, declaration := range file.Decls {
			function, is := declaration.(*ast.FuncDecl)
			if !is || function.Body == nil {
				continue
			}

			for _, name := range namesOf(function) {
				figures = append(figures, named{regexp.MustCompile("^" + name.pattern + "$"), files.Position(name.at).String()})
			}
		}
	}

	return figures
}

// figureName is a pattern that matches the names of a figure, and its position.
type figureName struct {
	pattern string
	at      token.Pos
}

// namesOf returns the figures that a function adds. It visits the function in source order, so that a variable has the value from
// the last assignment before the figure.
func namesOf(function *ast.FuncDecl) []figureName {
	var found []figureName

	variables := map[string]string{}

	ast.Inspect(function.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.AssignStmt:
			for i, left := range node.Lhs {
				if variable, is := left.(*ast.Ident); is && len(node.Rhs) == len(node.Lhs) {
					variables[variable.Name] = pattern(node.Rhs[i], variables)
				}
			}
		case *ast.ValueSpec:
			for i, variable := range node.Names {
				if i < len(node.Values) {
					variables[variable.Name] = pattern(node.Values[i], variables)
				}
			}
		case *ast.CompositeLit:
			if kind, is := node.Type.(*ast.SelectorExpr); !is || kind.Sel.Name != "Figure" {
				return true
			}

			for _, element := range node.Elts {
				pair, is := element.(*ast.KeyValueExpr)
				if !is {
					continue
				}

				if key, is := pair.Key.(*ast.Ident); is && key.Name == "Name" {
					found = append(found, figureName{pattern(pair.Value, variables), node.Pos()})
				}
			}
		}

		return true
	})

	return found
}

// pattern returns a regular expression that matches the values of an expression. It contains the values of literals and known
// variables, and matches any text in place of everything else.
func pattern(expression ast.Expr, variables map[string]string) string {
	const anything = ".+"

	switch expression := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(expression.Value); err == nil {
			return regexp.QuoteMeta(text)
		}
	case *ast.BinaryExpr:
		return pattern(expression.X, variables) + pattern(expression.Y, variables)
	case *ast.Ident:
		if known, is := variables[expression.Name]; is {
			return known
		}
	case *ast.CallExpr:
		function, is := expression.Fun.(*ast.SelectorExpr)
		if is && function.Sel.Name == "Sprintf" {
			return regexp.MustCompile(`%[.\d]*[a-z]`).ReplaceAllString(strings.ReplaceAll(pattern(expression.Args[0], variables), "%%", "%"), anything)
		}
	}

	return anything
}
