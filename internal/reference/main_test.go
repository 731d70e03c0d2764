package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPagesAreUpToDate fails if a plan, a variable or an error was changed without running `make generate`.
func TestPagesAreUpToDate(t *testing.T) {
	for _, page := range pages() {
		want, err := page.text()
		if err != nil {
			t.Fatal(err)
		}

		got, err := os.ReadFile(filepath.Join("../../docs", page.path))
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is outdated, run `make generate`: -code +page\n%s", page.path, diff)
		}
	}
}
