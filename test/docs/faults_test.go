package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const integrations = "docs/operator/integrations/"

var (
	faultDirective = regexp.MustCompile(`(?m)^//faults:(table|row) (\S+)(?: (.+))?$`)
	tableLine      = regexp.MustCompile(`^\|.*\|$`)
	// faultPart matches the faults that a row can combine.
	faultPart = regexp.MustCompile(`\b(?:[45]\d\d|away|slow|no JSON|lost)\b`)
)

// descriptions lists the tables of the pages that describe something other than faults.
func descriptions() []string {
	return []string{
		"btp.md#steps", "lifecycle-manager.md#objects", "lifecycle-manager.md#steps", "notifications.md#messages",
		"reconciler.md#what-the-reconciler-gets",
	}
}

// faultKinds returns, for each fault that every page must treat, an expression that the first column of one of its tables matches.
func faultKinds() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"away": regexp.MustCompile(`\baway\b`), "slow": regexp.MustCompile(`\bslow\b`), "garbled": regexp.MustCompile(`\bno JSON\b`),
		"401": regexp.MustCompile(`\b401\b`), "409": regexp.MustCompile(`\b409\b`), "429": regexp.MustCompile(`\b429\b`),
		"503 with Retry-After": regexp.MustCompile(`\b503 with Retry-After\b`),
	}
}

// TestFaultsHaveTests compares the rows of the fault tables with the tests that name them. A row that combines faults, such as 401 and
// 403, needs a test for each.
func TestFaultsHaveTests(t *testing.T) {
	tables, covered := faultTables(t), map[string]map[string]string{}

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

	for table, rows := range tables {
		for _, row := range rows {
			tested, named := covered[table][row]
			if !named {
				t.Errorf("%s%s: no test names the row %q", integrations, table, row)

				continue
			}

			parts := faultPart.FindAllString(row, -1)
			for _, part := range parts {
				if len(parts) > 1 && !strings.Contains(tested, part) {
					t.Errorf("%s%s: no sub-test of the row %q names %s", integrations, table, row, part)
				}
			}
		}
	}
}

// TestPagesTreatEveryFault checks that each page has a row for each kind of fault.
func TestPagesTreatEveryFault(t *testing.T) {
	pages := map[string]string{}

	for table, rows := range faultTables(t) {
		page, _, _ := strings.Cut(table, "#")
		pages[page] += strings.Join(rows, "\n") + "\n"
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

// faultTables returns the first cells of the rows of each fault table. The key is the page with the anchor of the section.
func faultTables(t *testing.T) map[string][]string {
	t.Helper()

	found := map[string][]string{}

	for _, page := range pages(t) {
		if path.Dir(page)+"/" != integrations {
			continue
		}

		table, began := "", false

		for line := range strings.Lines(read(t, page)) {
			line = strings.TrimSpace(line)

			switch match := heading.FindStringSubmatch(line); {
			case match != nil:
				table = path.Base(page) + "#" + anchor(match[1])
			case !tableLine.MatchString(line):
				began = false
			case !began: // the header
				if began = true; found[table] != nil {
					t.Errorf("%s has two tables: give each a heading", table)
				}
			case !strings.HasPrefix(line, "| ---") && !slices.Contains(descriptions(), table):
				cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
				row := strings.ReplaceAll(cell, "`", "")

				if slices.Contains(found[table], row) {
					t.Errorf("%s has two rows %q", table, row)
				}

				found[table] = append(found[table], row)
			}
		}
	}

	return found
}

// cover adds the rows that a test names, and reports names without a row:
//
//   - //faults:table PAGE#SECTION: its sub-tests are named ROW or ROW/PART;
//   - //faults:row PAGE#SECTION ROW: it tests the whole row.
//
// The value in covered is what the tests of the row name.
func cover(t *testing.T, file string, function *ast.FuncDecl, tables map[string][]string, covered map[string]map[string]string) {
	t.Helper()

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
			covered[table] = map[string]string{}
		}

		for _, name := range names {
			index := slices.IndexFunc(tables[table], func(row string) bool { return name == row || strings.HasPrefix(name, row+"/") })
			if index < 0 {
				t.Errorf("%s: %s tests %q, but %s%s has no such row", file, function.Name, name, integrations, table)

				continue
			}

			row := tables[table][index]
			covered[table][row] += "\n" + strings.TrimPrefix(name, row+"/")
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

// identifier returns the name of an identifier, or an empty text for other expressions.
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
