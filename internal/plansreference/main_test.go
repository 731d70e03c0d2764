package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestThePageIsThatOfTheCatalog also keeps those who change a plan from forgetting `make generate`.
func TestThePageIsThatOfTheCatalog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plans.md")
	if err := write(file); err != nil {
		t.Fatal(err)
	}

	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	got, err := os.ReadFile("../../docs/user/plans.md")
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run `make generate`: -catalog +page\n%s", diff)
	}
}
