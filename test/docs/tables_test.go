package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/test/docs/markdown"
)

const upgradePage = "docs/operator/upgrade.md"

var (
	// migrations matches the call that migrates a set of tables: its name, and the part of its folder that depends on the database.
	migrations  = regexp.MustCompile(`\.Migrate\(ctx, "(\w+)", migrations, "migrations(/"\+)?`)
	createTable = regexp.MustCompile(`(?i)CREATE TABLE (\w+)`)
)

// TestVersionTablesAreListed compares the version tables in the databases, and the tables whose version each of them has, with the
// page on upgrades.
func TestVersionTablesAreListed(t *testing.T) {
	calls, statements := map[string][]string{}, map[string][]string{}

	walk(t, func(file string) {
		folder := path.Dir(file)

		switch {
		case !strings.HasPrefix(file, "storage/") || strings.HasSuffix(file, "_test.go"):
		case strings.HasSuffix(file, ".go"):
			for _, call := range migrations.FindAllStringSubmatch(markdown.Read(t, root, file), -1) {
				calls["schema_"+call[1]] = []string{folder + "/migrations", call[2]}
			}
		case strings.HasSuffix(file, ".sql"):
			statements[folder] = append(statements[folder], matches(createTable, markdown.Read(t, root, file))...)
		}
	})

	used, listed := map[string][]string{}, map[string][]string{}

	for name, call := range calls {
		folder := call[0]
		if call[1] != "" {
			folder += "/postgres"
		}

		used[name] = slices.Sorted(slices.Values(statements[folder]))
	}

	for name, cells := range rows(t, upgradePage, "Versions of the tables") {
		listed[name] = slices.Sorted(slices.Values(matches(codeSpan, cells[len(cells)-1])))
	}

	if diff := cmp.Diff(used, listed); diff != "" || len(used) == 0 {
		t.Errorf("-used +listed in %s:\n%s", upgradePage, diff)
	}
}
