package e2e

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/test/harness"
)

var update = flag.Bool("update", false, "write the output of commands to the documentation")

// listings contains a page's code blocks that show a command with its output.
type listings struct {
	*testing.T

	// page is the path of the page. arguments maps arguments on the page to those that the commands get instead.
	page      string
	arguments map[string]string
}

// newListings returns the listings of a page. files contains the contents of the files that the commands name.
func newListings(t *testing.T, page string, files map[string]string) listings {
	t.Helper()

	folder := t.TempDir()
	paths := map[string]string{}

	for name, content := range files {
		paths[name] = filepath.Join(folder, name)
		if err := os.WriteFile(paths[name], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return listings{T: t, page: filepath.Join(harness.Root, page), arguments: paths}
}

// want runs the only command on the page that begins with command, and compares its output with that on the page. It calls run
// with the command's arguments.
func (l listings) want(command string, run func(args []string) string) {
	l.Helper()

	content, err := os.ReadFile(l.page)
	if err != nil {
		l.Fatal(err)
	}

	block := regexp.MustCompile("(?ms)^( *)```console\n *\\$ (" + regexp.QuoteMeta(command) + "(?: [^\n]*)?)\n(.*?)^ *```$")

	found := block.FindAllSubmatchIndex(content, -1)
	if len(found) != 1 {
		l.Fatalf("the page has %d blocks with %q", len(found), command)
	}

	match := found[0]
	indent, line := string(content[match[2]:match[3]]), string(content[match[4]:match[5]])

	args := strings.Fields(line)[1:]
	for i, arg := range args {
		args[i] = cmp.Or(l.arguments[arg], arg)
	}

	var shown strings.Builder
	for text := range strings.Lines(run(args)) {
		shown.WriteString(strings.TrimRight(indent+text, " \n") + "\n")
	}

	if *update {
		content = slices.Concat(content[:match[6]], []byte(shown.String()), content[match[7]:])
		if err := os.WriteFile(l.page, content, 0o600); err != nil {
			l.Fatal(err)
		}

		return
	}

	if diff := gocmp.Diff(string(content[match[6]:match[7]]), shown.String()); diff != "" {
		l.Errorf("the output of %q differs from that on the page, run the test with -update: -page +output\n%s", line, diff)
	}
}
