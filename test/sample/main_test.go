package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSkipped checks the size of the sample, and that the seed determines it.
func TestSkipped(t *testing.T) {
	folder := t.TempDir()
	names := []string{"TestA", "TestB", "TestC", "TestD", "TestE", "TestF", "TestG", "TestH"}
	source := "package x\n\nfunc TestMain(m *testing.M) {}\n\nfunc helper(t *testing.T) {}\n\nfunc " + strings.Join(names, "(t *testing.T) {}\n\nfunc ") +
		"(t *testing.T) {}\n"

	if err := os.WriteFile(filepath.Join(folder, "x_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}

	kept := func(percent int, seed string) []string {
		t.Helper()

		skip, _, err := skipped([]string{folder}, percent, seed)
		if err != nil {
			t.Fatal(err)
		}

		pattern := regexp.MustCompile(skip)

		return slices.DeleteFunc(slices.Clone(names), pattern.MatchString)
	}

	for percent, want := range map[int]int{0: 1, 1: 1, 25: 2, 50: 4, 100: 8} {
		if got := kept(percent, "seed"); len(got) != want {
			t.Errorf("%d %% of eight tests: %v, want %d", percent, got, want)
		}
	}

	if one, again := kept(50, "seed"), kept(50, "seed"); !slices.Equal(one, again) {
		t.Errorf("one seed selects %v and %v", one, again)
	}

	seen := map[string]bool{}
	for _, seed := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
		for _, name := range kept(25, seed) {
			seen[name] = true
		}
	}

	if len(seen) != len(names) {
		t.Errorf("twelve seeds select only %v", seen)
	}

	if _, _, err := skipped([]string{t.TempDir()}, 50, "seed"); err == nil {
		t.Error("a folder without tests is accepted")
	}

	if _, _, err := skipped([]string{folder}, 101, "seed"); err == nil {
		t.Error("101 % is accepted")
	}
}
