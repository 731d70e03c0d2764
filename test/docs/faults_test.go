package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/internal/sandbox/faulttable"
)

const integrations = faulttable.Folder + "/"

var (
	faultDirective = regexp.MustCompile(`(?m)^//faults:(table|row) (\S+)(?: (.+))?$`)
	// faultPart matches the faults that a row can combine.
	faultPart = regexp.MustCompile(`\b(?:[45]\d\d|unreachable|slow|no JSON|lost)\b`)
)

// coverage describes the tests of a row.
type coverage struct {
	// parts contains the parts of the test names that follow the name of the row, one per line.
	parts string
	// shown reports whether one of the tests compares the text that the fault shows with the page.
	shown bool
}

// descriptions lists the tables on the fault pages that describe something other than faults.
func descriptions() []string {
	return []string{
		"btp.md#steps", "lifecycle-manager.md#objects", "lifecycle-manager.md#steps", "notifications.md#messages",
		"reconciler.md#what-the-reconciler-gets",
	}
}

// faultKinds returns the kinds of faults that every page must cover. Each has an expression that must match the first column of a
// row on the page.
func faultKinds() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"unreachable": regexp.MustCompile(`\bunreachable\b`), "slow": regexp.MustCompile(`\bslow\b`), "garbled": regexp.MustCompile(`\bno JSON\b`),
		"401": regexp.MustCompile(`\b401\b`), "409": regexp.MustCompile(`\b409\b`), "429": regexp.MustCompile(`\b429\b`),
		"503 with Retry-After": regexp.MustCompile(`\b503 with Retry-After\b`),
	}
}

// TestFaultsHaveTests compares the rows of the fault tables with the tests that name them. A row that combines faults, such as 401 and
// 403, needs a test for each. One of the row's tests must compare the text that the fault shows with the page.
func TestFaultsHaveTests(t *testing.T) {
	tables, covered := faultTables(t), map[string]map[string]coverage{}

	eachGoFile(t, func(file, content string) {
		if !strings.HasSuffix(file, "_test.go") || !faultDirective.MatchString(content) {
			return
		}

		parsed, err := parser.ParseFile(token.NewFileSet(), file, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}

		for _, declared := range parsed.Decls {
			if function, is := declared.(*ast.FuncDecl); is && function.Doc != nil {
				cover(t, file, function, tables, covered)
			}
		}
	})

	for name, table := range tables {
		for _, row := range table.Rows {
			tests, named := covered[name][row.Name]

			switch {
			case !named:
				t.Errorf("%s%s: no test names the row %q: link a test with //faults:row or //faults:table, as CONTRIBUTING.md describes", integrations, name, row.Name)

				continue
			case !tests.shown && len(faulttable.Texts(table.Cell(row, faulttable.Shown))) > 0:
				t.Errorf("%s%s: no test of the row %q compares what is shown", integrations, name, row.Name)
			}

			parts := faultPart.FindAllString(row.Name, -1)
			for _, part := range parts {
				if len(parts) > 1 && !strings.Contains(tests.parts, part) {
					t.Errorf("%s%s: no sub-test of the row %q names %s", integrations, name, row.Name, part)
				}
			}
		}
	}
}

// TestFaultsSayEverything checks that each row contains the texts that the fault shows, the pause before a retry, and how the
// fault ends.
func TestFaultsSayEverything(t *testing.T) {
	for name, table := range faultTables(t) {
		for _, row := range table.Rows {
			shown := table.Cell(row, faulttable.Shown)
			if !strings.HasPrefix(shown, "nothing") && len(faulttable.Texts(shown)) == 0 {
				t.Errorf("%s%s: the row %q does not quote what is shown", integrations, name, row.Name)
			}

			for _, column := range []string{faulttable.Retried, faulttable.Ends} {
				if table.Cell(row, column) == "" {
					t.Errorf("%s%s: the row %q has nothing in the column %q", integrations, name, row.Name, column)
				}
			}
		}
	}
}

// TestPagesTreatEveryFault checks that each page has a row for each kind in faultKinds.
func TestPagesTreatEveryFault(t *testing.T) {
	pages := map[string]string{}

	for table, rows := range faultTables(t) {
		page, _, _ := strings.Cut(table, "#")
		for _, row := range rows.Rows {
			pages[page] += row.Name + "\n"
		}
	}

	if len(pages) < 7 {
		t.Errorf("found %d pages with faults: the test looks for the wrong ones", len(pages))
	}

	for page, rows := range pages {
		for kind, expression := range faultKinds() {
			if !expression.MatchString(rows) {
				t.Errorf("%s%s: no row treats the fault %q", integrations, page, kind)
			}
		}
	}
}

// faultTables returns the fault tables by their names.
func faultTables(t *testing.T) map[string]faulttable.Table {
	t.Helper()

	tables, err := faulttable.Read(root)
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range descriptions() {
		delete(tables, name)
	}

	for name, table := range tables {
		seen := map[string]bool{}

		for _, row := range table.Rows {
			if seen[row.Name] {
				t.Errorf("%s%s has two rows %q", integrations, name, row.Name)
			}

			seen[row.Name] = true
		}
	}

	return tables
}

// cover adds the rows that a test names in its directives to covered, and fails the test for names without a row:
//
//   - //faults:table PAGE#SECTION: its sub-tests are named ROW or ROW/PART;
//   - //faults:row PAGE#SECTION ROW: it tests the whole row.
//
// A test compares the shown text if it calls the method Shows of package faulttable, or a method wantShown that calls it.
func cover(t *testing.T, file string, function *ast.FuncDecl, tables map[string]faulttable.Table, covered map[string]map[string]coverage) {
	t.Helper()

	shown := false

	ast.Inspect(function, func(node ast.Node) bool {
		if called, is := node.(*ast.SelectorExpr); is && (called.Sel.Name == "Shows" || called.Sel.Name == "wantShown") {
			shown = true
		}

		return true
	})

	for _, comment := range function.Doc.List {
		match := faultDirective.FindStringSubmatch(comment.Text)
		if match == nil {
			continue
		}

		table, names := match[2], []string{match[3]}
		if match[1] == "table" {
			names = subtests(function)
		}

		if covered[table] == nil {
			covered[table] = map[string]coverage{}
		}

		for _, name := range names {
			row, found := tables[table].Find(name)
			if !found {
				t.Errorf("%s: %s tests %q, but %s%s has no such row", file, function.Name, name, integrations, table)

				continue
			}

			tests := covered[table][row.Name]
			covered[table][row.Name] = coverage{tests.parts + "\n" + strings.TrimPrefix(name, row.Name+"/"), tests.shown || shown}
		}
	}
}

// subtests returns the names of the sub-tests that a test runs: literals, and the literal keys of the map over which it loops.
func subtests(function *ast.FuncDecl) []string {
	var names []string

	maps, loops := map[string]*ast.CompositeLit{}, map[string]ast.Expr{}

	ast.Inspect(function, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.AssignStmt:
			if literal, is := node.Rhs[0].(*ast.CompositeLit); is {
				maps[identifier(node.Lhs[0])] = literal
			}
		case *ast.RangeStmt:
			loops[identifier(node.Key)] = node.X
		case *ast.CallExpr:
			selected, is := node.Fun.(*ast.SelectorExpr)
			if !is || selected.Sel.Name != "Run" || len(node.Args) != 2 {
				break
			}

			names = append(names, literals(node.Args[0])...)

			looped, is := loops[identifier(node.Args[0])].(*ast.CompositeLit)
			if !is {
				looped = maps[identifier(loops[identifier(node.Args[0])])]
			}

			if looped == nil {
				break
			}

			for _, element := range looped.Elts {
				if pair, is := element.(*ast.KeyValueExpr); is {
					names = append(names, literals(pair.Key)...)
				}
			}
		}

		return true
	})

	return names
}

// identifier returns the name of an identifier, or "" for other expressions.
func identifier(expression ast.Expr) string {
	if name, is := expression.(*ast.Ident); is {
		return name.Name
	}

	return ""
}

// literals returns the text of a string literal, and nothing for other expressions.
func literals(expression ast.Expr) []string {
	literal, is := expression.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return nil
	}

	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return nil
	}

	return []string{text}
}
