package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/test/docs/markdown"
)

const security = "SECURITY.md"

// TestPromisesHaveTests checks that every promise in SECURITY.md names tests, either as `folder.TestName` or as a test file, and
// that these tests exist.
func TestPromisesHaveTests(t *testing.T) {
	_, after, ok := strings.Cut(markdown.Read(t, root, security), "\n## What the services promise\n")
	if !ok {
		t.Fatalf("%s has no section with the promises", security)
	}

	section, _, _ := strings.Cut(after, "\n## ")
	promises := 0

	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || cells[0] == " promise" {
			continue
		}

		promises++

		names := codeSpan.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(cells) != 2 || len(names) == 0 {
			t.Errorf("the promise names no test: %s", cells[0])
		}

		for _, name := range names {
			if problem := missingTest(name[1]); problem != "" {
				t.Errorf("%s: %s; the promise is: %s", name[1], problem, cells[0])
			}
		}
	}

	if promises < 10 {
		t.Errorf("found %d promises: the test looks for the wrong ones", promises)
	}
}

// missingTest returns the reason why the repository has no test with the given name, or "" if it has one.
func missingTest(name string) string {
	folder, function, ok := strings.Cut(name, ".Test")

	switch {
	case strings.HasSuffix(name, "_test.go"):
		if !declares(filepath.Join(root, name), `\w+`) {
			return "there is no such file, or it has no tests"
		}

		return ""
	case !ok:
		return "write it as folder.TestName, or as the path of a test file"
	}

	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		return err.Error()
	}

	for _, file := range files {
		if declares(file, regexp.QuoteMeta(function)) {
			return ""
		}
	}

	return "the folder has no such test"
}

// declares reports whether the file declares a test function whose name after "Test" matches the pattern.
func declares(file, pattern string) bool {
	content, err := os.ReadFile(file)

	return err == nil && regexp.MustCompile(`(?m)^func Test`+pattern+`\(t \*testing\.T\)`).Match(content)
}
