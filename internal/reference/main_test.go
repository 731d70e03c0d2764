package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPagesAreUpToDate fails if somebody changes a plan, a variable or an error without running `make generate`.
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
			t.Errorf("run `make generate`: -code +%s\n%s", page.path, diff)
		}
	}
}
