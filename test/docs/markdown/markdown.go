// Package markdown reads the Markdown files of the repository for tests.
package markdown

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Pages returns the paths of the repository's Markdown files, relative to root, which is the path of the repository.
func Pages(t *testing.T, root string) []string {
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

// Read returns the content of a page or of another file in the repository, or "" if the file does not exist.
func Read(t *testing.T, root, page string) string {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(root, page))
	if os.IsNotExist(err) {
		return ""
	}

	if err != nil {
		t.Fatal(err)
	}

	return string(content)
}
