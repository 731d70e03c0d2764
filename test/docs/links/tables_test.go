package links

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/test/docs/markdown"
)

// delimiter matches the second line of a table.
var delimiter = regexp.MustCompile(`^\|[\s:|-]+\|$`)

// TestTablesHaveHeaders checks that each table has a header. Rows that follow an empty line have no header and would be shown as
// text.
func TestTablesHaveHeaders(t *testing.T) {
	for _, page := range markdown.Pages(t, root) {
		content, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}

		before, fenced := "", false

		lines := strings.Split(string(content)+"\n", "\n")

		for i, line := range lines[:len(lines)-1] {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}

			if !fenced && strings.HasPrefix(line, "|") && !strings.HasPrefix(before, "|") && !delimiter.MatchString(lines[i+1]) {
				t.Errorf("%s:%d: the table has no header", page, i+1)
			}

			before = line
		}
	}
}
