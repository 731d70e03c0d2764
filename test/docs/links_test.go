package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// markup matches the characters that GitHub removes from a heading to form its anchor.
	markup = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// TestLinks checks every relative link in Markdown files, including its anchor.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		for _, target := range targets(t, page) {
			file, anchor, _ := strings.Cut(target, "#")
			path := page

			if file != "" {
				path = filepath.Join(filepath.Dir(page), file)
			}

			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, target)

				continue
			}

			if anchor != "" && filepath.Ext(path) == ".md" && !anchors(t, path)[anchor] {
				t.Errorf("%s links to %s, whose page has no such heading", page, target)
			}
		}
	}
}

// TestEveryPageIsReachable checks that links lead from docs/README.md to every page below docs. ADRs are exempt, because other
// pages link to the ADR folder.
func TestEveryPageIsReachable(t *testing.T) {
	reached := map[string]bool{}

	var visit func(page string)

	visit = func(page string) {
		if reached[page] || filepath.Ext(page) != ".md" {
			return
		}

		reached[page] = true

		for _, target := range targets(t, page) {
			file, _, _ := strings.Cut(target, "#")
			visit(filepath.Join(filepath.Dir(page), file))
		}
	}

	visit("docs/README.md")

	for _, page := range pages(t) {
		if strings.HasPrefix(page, "docs/") && !strings.HasPrefix(page, "docs/adr/") && !reached[page] {
			t.Errorf("no link leads from docs/README.md to %s", page)
		}
	}
}

// pages lists the Markdown files of the repository, relative to its root.
func pages(t *testing.T) []string {
	t.Helper()

	var found []string

	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		name := entry.Name()
		if entry.IsDir() && path != root && strings.HasPrefix(name, ".") && name != ".github" || name == "testdata" || name == "node_modules" {
			return filepath.SkipDir
		}

		if filepath.Ext(path) == ".md" {
			relative, err := filepath.Rel(root, path)
			found = append(found, relative)

			return err
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if len(found) < 20 {
		t.Fatalf("found only %d pages: the test may be looking in the wrong folder", len(found))
	}

	return found
}

// targets lists the targets of the relative links of a page, except those in code blocks.
func targets(t *testing.T, page string) []string {
	t.Helper()

	var found []string

	for i, part := range strings.Split(read(t, page), "```") {
		if i%2 == 1 {
			continue
		}

		for _, match := range link.FindAllStringSubmatch(part, -1) {
			if !strings.Contains(match[1], "://") && !strings.HasPrefix(match[1], "mailto:") {
				found = append(found, match[1])
			}
		}
	}

	return found
}

// anchors returns the anchors that GitHub generates for the headings of a page.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()

	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(read(t, page), -1) {
		found[anchor(match[1])] = true
	}

	return found
}

// anchor returns the anchor that GitHub generates for a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(markup.ReplaceAllString(heading, "")), " ", "-")
}

func read(t *testing.T, page string) string {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(root, page))
	if os.IsNotExist(err) {
		return "" // TestLinks reports the link
	}

	if err != nil {
		t.Fatal(err)
	}

	return string(content)
}
