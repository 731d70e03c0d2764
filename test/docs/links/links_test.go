package links

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/environment-broker/environment-broker/test/docs/markdown"
)

const (
	root = "../../.."
	// index is the page whose links are the navigation of the site.
	index = "docs/README.md"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// markup matches the characters that GitHub removes from a heading to form its anchor.
	markup = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// TestLinks checks every relative link in Markdown files, including its anchor.
func TestLinks(t *testing.T) {
	for _, page := range markdown.Pages(t, root) {
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

// TestNavigation checks that docs/README.md, and therefore the navigation of the site, lists every page below docs exactly once.
// The site itself adds the ADRs.
func TestNavigation(t *testing.T) {
	_, sections, _ := strings.Cut(markdown.Read(t, root, index), "\n## ")

	var navigation []string

	for _, match := range link.FindAllStringSubmatch(sections, -1) {
		navigation = append(navigation, filepath.Join(filepath.Dir(index), match[1]))
	}

	for _, page := range markdown.Pages(t, root) {
		if !strings.HasPrefix(page, "docs/") || strings.HasPrefix(page, "docs/adr/") || page == index {
			continue
		}

		times := len(slices.DeleteFunc(slices.Clone(navigation), func(entry string) bool { return entry != page }))
		if times != 1 {
			t.Errorf("the sections of %s link to %s %d times instead of once", index, page, times)
		}
	}
}

// targets returns the targets of the relative links on a page, except those in code blocks.
func targets(t *testing.T, page string) []string {
	t.Helper()

	var found []string

	for i, part := range strings.Split(markdown.Read(t, root, page), "```") {
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
	for _, match := range heading.FindAllStringSubmatch(markdown.Read(t, root, page), -1) {
		found[anchor(match[1])] = true
	}

	return found
}

// anchor returns the anchor that GitHub generates for a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(markup.ReplaceAllString(heading, "")), " ", "-")
}
