package sources_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// files contains a module with a program and a test that opens the sources of the program. Its copy of package sources is added.
func files() map[string]string {
	return map[string]string{
		"go.mod":          "module example.com/nested\n\ngo 1.25\n",
		"program/main.go": "package main\n\nimport \"example.com/nested/imported\"\n\nfunc main() { imported.Run() }\n",
		"imported/run.go": "package imported\n\nfunc Run() {}\n",
		"other/other.go":  "package other\n",
		"run_test.go": `package nested

import (
	"testing"

	"example.com/nested/sources"
)

func TestProgram(t *testing.T) {
	if err := sources.Open(".", "./program"); err != nil {
		t.Fatal(err)
	}
}
`,
	}
}

// TestOpen checks that a cached result is valid until a package changes that the program imports.
func TestOpen(t *testing.T) {
	t.Parallel()

	folder, written := t.TempDir(), files()

	source, err := os.ReadFile("sources.go")
	if err != nil {
		t.Fatal(err)
	}

	written["sources/sources.go"] = string(source)

	for _, name := range slices.Sorted(maps.Keys(written)) {
		write(t, filepath.Join(folder, name), written[name])
	}

	steps := []struct {
		name, file, content string
		cached              bool
	}{
		{name: "first run"},
		{name: "no change", cached: true},
		{name: "change of another package", file: "other/other.go", content: "package other\n\nfunc Run() {}\n", cached: true},
		{name: "change of an imported package", file: "imported/run.go", content: "package imported\n\nfunc Run() { println() }\n"},
		{name: "new file of the program", file: "program/more.go", content: "package main\n"},
		{name: "no further change", cached: true},
	}

	for _, step := range steps {
		if step.file != "" {
			write(t, filepath.Join(folder, step.file), step.content)
		}

		run := exec.CommandContext(t.Context(), "go", "test", "-vet=off", ".")
		run.Dir = folder

		output, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", step.name, err, output)
		}

		if cached := strings.Contains(string(output), "(cached)"); cached != step.cached {
			t.Errorf("%s: cached: %t, want %t: %s", step.name, cached, step.cached, output)
		}
	}
}

// write writes a file and creates its folder.
func write(t *testing.T, path, content string) {
	t.Helper()

	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
