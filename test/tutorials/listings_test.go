package tutorials

import (
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/test/harness"
)

// processesPage is the path of the generated page that lists the steps of all processes.
const processesPage = "docs/operator/processes.md"

// tutorial is a page with the listings for a new step.
type tutorial struct {
	// kind is the kind of the operation that runs the step.
	kind, page string
	listings   []listing
}

// listing is a code block that creates or changes a file.
type listing struct {
	// file is relative to the root of the repository.
	file string
	// line is the number of the first line of the block in its page.
	line    int
	created bool
	text    string
}

var (
	fence = regexp.MustCompile("^( *)```([a-z]*)$")
	path  = regexp.MustCompile("`([\\w.-]+(?:/[\\w.-]+)+\\.(?:go|md))`")
)

// listings returns the Go code blocks and the diffs of a page.
func listings(page string) ([]listing, error) {
	var (
		found          []listing
		file, language string
		block          []string
		indent         string
		inside         bool
	)

	for i, line := range strings.Split(page, "\n") {
		match := fence.FindStringSubmatch(line)

		switch {
		case match == nil && inside:
			block = append(block, strings.TrimPrefix(line, indent))
		case match == nil:
			if names := path.FindAllStringSubmatch(line, -1); names != nil {
				file = names[len(names)-1][1]
			}
		case !inside:
			inside, indent, language, block = true, match[1], match[2], nil
		default:
			inside = false

			if language != "go" && language != "diff" {
				continue
			}

			if file == "" {
				return nil, fmt.Errorf("line %d: no path in backticks before the listing that ends here", i+1)
			}

			found = append(found, listing{file: file, line: i + 1 - len(block), created: language == "go", text: strings.Join(block, "\n") + "\n"})
			file = ""
		}
	}

	return found, nil
}

// files contains the contents of changed files, by their paths relative to the root of the repository.
type files map[string]string

// apply applies the listings of a tutorial. It fails the test if the resulting Go code is not formatted.
func (f files) apply(t *testing.T, tutorial tutorial) {
	t.Helper()

	for _, one := range tutorial.listings {
		if one.file == processesPage {
			continue
		}

		before, present := f[one.file]
		if !present {
			content, err := os.ReadFile(filepath.Join(harness.Root, one.file))
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}

			before, present = string(content), err == nil
		}

		after, err := one.applied(before, present)
		if err == nil {
			err = formatted(after)
		}

		if err != nil {
			t.Fatalf("%s:%d: %s: %v", tutorial.page, one.line, one.file, err)
		}

		f[one.file] = after
	}
}

// applied returns the content of the file after the listing has been applied.
func (l listing) applied(before string, present bool) (string, error) {
	if l.created {
		if present {
			return "", fmt.Errorf("the file exists already")
		}

		return l.text, nil
	}

	for change := range strings.SplitSeq(l.text, "@@\n") {
		var old, replacement strings.Builder

		for line := range strings.Lines(change) {
			marker, content := line[:1], line[1:]
			if line == "\n" {
				marker, content = " ", "\n"
			}

			if marker != " " && marker != "+" && marker != "-" {
				return "", fmt.Errorf("a line of a diff starts with a space, + or -: %q", line)
			}

			if marker != "+" {
				old.WriteString(content)
			}

			if marker != "-" {
				replacement.WriteString(content)
			}
		}

		// Match only whole lines: both texts start and end at line breaks.
		found := strings.Count("\n"+before, "\n"+old.String())
		if old.Len() == 0 || found != 1 {
			return "", fmt.Errorf("the file has these lines %d times instead of once:\n%s", found, old.String())
		}

		before = strings.TrimPrefix(strings.Replace("\n"+before, "\n"+old.String(), "\n"+replacement.String(), 1), "\n")
	}

	return before, nil
}

// formatted returns an error unless the code is formatted.
func formatted(code string) error {
	wanted, err := format.Source([]byte(code))
	if err != nil {
		return err
	}

	lines := strings.Split(string(wanted), "\n")
	for i, line := range strings.Split(code, "\n") {
		if i >= len(lines) || lines[i] != line {
			return fmt.Errorf("after the listing, gofmt would change the line %q", line)
		}
	}

	return nil
}

// tests returns the names of the tests in the listings.
func (t tutorial) tests() []string {
	var names []string

	for _, one := range t.listings {
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(one.text, -1) {
			names = append(names, match[1])
		}
	}

	return names
}

// rows returns the cells of the rows from processesPage that the tutorial shows.
func (t tutorial) rows() [][]string {
	var rows [][]string

	for _, one := range t.listings {
		if one.file != processesPage {
			continue
		}

		for line := range strings.Lines(one.text) {
			cells := strings.Split(strings.TrimSpace(strings.TrimPrefix(line, "+")), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}

			rows = append(rows, cells[1:len(cells)-1])
		}
	}

	return rows
}

// TestApply checks that applying a listing that no longer matches its file returns an error.
func TestApply(t *testing.T) {
	const before = "a\nb\nc\nb\n"

	cases := map[string]struct {
		reason  string
		listing listing
		present bool
		want    string // empty for an error
	}{
		"insert":    {"lines are added after the context", listing{text: " a\n+x\n"}, true, "a\nx\nb\nc\nb\n"},
		"replace":   {"several changes of a file", listing{text: "-a\n+x\n@@\n c\n+y\n"}, true, "x\nb\nc\ny\nb\n"},
		"missing":   {"the context has changed", listing{text: " z\n+x\n"}, true, ""},
		"ambiguous": {"the context does not say where", listing{text: " b\n+x\n"}, true, ""},
		"no anchor": {"a diff needs a context", listing{text: "+x\n"}, true, ""},
		"part":      {"the context is whole lines", listing{text: " \n+x\n"}, true, ""},
		"create":    {"a new file", listing{created: true, text: "x\n"}, false, "x\n"},
		"exists":    {"the product has got such a file", listing{created: true, text: "x\n"}, true, ""},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := c.listing.applied(before, c.present)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%s: got %q, %v", c.reason, got, err)
			}
		})
	}

	found, err := listings("`a/b.go`, not `c`:\n\n  ```go\n  x\n  ```\n\n```sh\ny\n```\n")
	if err != nil || !slices.Equal(found, []listing{{file: "a/b.go", line: 4, created: true, text: "x\n"}}) {
		t.Errorf("got %v, %v", found, err)
	}

	if _, err := listings("```go\nx\n```\n"); err == nil {
		t.Error("a listing without a file is accepted")
	}
}
