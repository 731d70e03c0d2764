package docs_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/environment-broker/environment-broker/test/docs/markdown"
)

const dependencies = "docs/contributor/dependencies.md"

var (
	// debianPackages matches the names of packages after `apt-get install` and its options.
	debianPackages = regexp.MustCompile(`apt-get install((?: +-\S+)*)((?: +[a-z0-9][a-z0-9.+-]+)+)`)
	goInstall      = regexp.MustCompile(`go install (\S+)@`)
	npx            = regexp.MustCompile(`npx --yes ([^\s@]+)@`)
	baseImage      = regexp.MustCompile(`(?m)^(?:FROM |ARG \w*IMAGE=)([^\s:@$]+)[:@]|"image": "([^\s:@"]+)[:@]`)
	action         = regexp.MustCompile(`uses: ([^\s@]+)@`)
	codeSpan       = regexp.MustCompile("`([^`]+)`")
)

// TestModulesAreListed compares the modules that each go.mod requires directly with the page, and checks that the folders in the
// page's last column import the module.
func TestModulesAreListed(t *testing.T) {
	found := 0

	walk(t, func(path string) {
		if filepath.Base(path) != "go.mod" {
			return
		}

		found++

		listed := rows(t, dependencies, "Modules of `"+path+"`")
		compare(t, "modules of "+path, directModules(t, path), slices.Collect(maps.Keys(listed)))

		for module, cells := range listed {
			folders := codeSpan.FindAllStringSubmatch(cells[len(cells)-1], -1)
			if len(folders) == 0 {
				t.Errorf("%s: the row of %s names no folder", dependencies, module)
			}

			for _, folder := range folders {
				if !imports(t, folder[1], module) {
					t.Errorf("%s: no Go file in %s imports %s", dependencies, folder[1], module)
				}
			}
		}
	})

	if found != 4 {
		t.Errorf("found %d files go.mod, want 4", found)
	}
}

// TestToolsAreListed compares the programs, packages, images and actions that occur in files of the repository with those on the
// page.
func TestToolsAreListed(t *testing.T) {
	tools, packages, images, actions := toolsOfModule(t), []string{}, []string{}, []string{}

	walk(t, func(path string) {
		name := filepath.Base(path)
		workflow := strings.HasPrefix(path, ".github/workflows/")
		container := strings.HasPrefix(name, "Dockerfile") || name == "devcontainer.json"

		if !workflow && !container && name != "Makefile" && filepath.Ext(name) != ".sh" {
			return
		}

		content := markdown.Read(t, root, path)
		tools = append(tools, matches(goInstall, content)...)
		tools = append(tools, matches(npx, content)...)
		images = append(images, matches(baseImage, content)...)
		actions = append(actions, matches(action, content)...)

		for _, match := range debianPackages.FindAllStringSubmatch(content, -1) {
			packages = append(packages, strings.Fields(match[2])...)
		}
	})

	tools = append(tools, npmPackages(t)...)

	for section, used := range map[string][]string{
		"Tools": tools, "Debian packages": packages, "Images": images, "GitHub Actions": actions,
	} {
		if len(used) == 0 {
			t.Errorf("%s: found none: the test looks for the wrong ones", section)
		}

		compare(t, section, used, slices.Collect(maps.Keys(rows(t, dependencies, section))))
	}
}

// npmPackages returns the npm packages that the documentation site requires directly.
func npmPackages(t *testing.T) []string {
	t.Helper()

	var required struct {
		DevDependencies map[string]string `json:"devDependencies"`
	}

	if err := json.Unmarshal([]byte(markdown.Read(t, root, "docs/.vitepress/package.json")), &required); err != nil {
		t.Fatal(err)
	}

	return slices.Collect(maps.Keys(required.DevDependencies))
}

// TestLockNamesNoRegistry checks that the npm lock file contains checksums but no addresses, so that each machine uses the
// registry that is configured on it.
func TestLockNamesNoRegistry(t *testing.T) {
	lock := markdown.Read(t, root, "docs/.vitepress/package-lock.json")
	if strings.Contains(lock, `"resolved"`) || strings.Contains(lock, ".tgz") {
		t.Error("docs/.vitepress/package-lock.json has addresses of packages: remove the fields `resolved`")
	}

	if strings.Count(lock, `"integrity": "sha512-`) < 100 {
		t.Error("docs/.vitepress/package-lock.json lacks checksums")
	}
}

// compare fails the test for each name that only the repository uses or only the page lists.
func compare(t *testing.T, subject string, used, listed []string) {
	t.Helper()

	slices.Sort(used)
	slices.Sort(listed)

	if diff := cmp.Diff(slices.Compact(used), listed); diff != "" {
		t.Errorf("%s: -used +listed in %s:\n%s", subject, dependencies, diff)
	}
}

// rows returns the cells of the table rows in a section of a page, by the code span in the first column.
func rows(t *testing.T, page, section string) map[string][]string {
	t.Helper()

	_, after, ok := strings.Cut(markdown.Read(t, root, page), "\n## "+section+"\n")
	if !ok {
		t.Errorf("%s has no section %q", page, section)
	}

	body, _, _ := strings.Cut(after, "\n## ")
	found := map[string][]string{}

	for line := range strings.Lines(body) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| `") {
			continue
		}

		name := codeSpan.FindStringSubmatch(cells[0])[1]
		if _, repeated := found[name]; repeated {
			t.Errorf("%s lists %s twice", page, name)
		}

		found[name] = cells
	}

	return found
}

// module is the part of the output of `go mod edit -json` that the tests read.
type module struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Tool []struct{ Path string }
}

func moduleOf(t *testing.T, path string) module {
	t.Helper()

	command := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", filepath.Base(path))
	command.Dir = filepath.Join(root, filepath.Dir(path))

	output, err := command.Output()
	if err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}

	var parsed module
	if err := json.Unmarshal(output, &parsed); err != nil {
		t.Fatalf("reading %s: %v", path, err)
	}

	return parsed
}

func directModules(t *testing.T, path string) []string {
	t.Helper()

	var found []string

	for _, required := range moduleOf(t, path).Require {
		if !required.Indirect {
			found = append(found, required.Path)
		}
	}

	return found
}

func toolsOfModule(t *testing.T) []string {
	t.Helper()

	var found []string

	for _, tool := range moduleOf(t, "go.mod").Tool {
		found = append(found, tool.Path)
	}

	return found
}

// imports reports whether a Go file in the folder or below it imports a package of the module.
func imports(t *testing.T, folder, module string) bool {
	t.Helper()

	found := false
	pattern := regexp.MustCompile(`(?m)^(?:import)?\s+(?:\S+ )?"` + regexp.QuoteMeta(module) + `["/]`)

	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || found || filepath.Ext(path) != ".go" {
			return err
		}

		content, err := os.ReadFile(path)
		found = pattern.Match(content)

		return err
	})
	if err != nil {
		t.Errorf("reading %s: %v", folder, err)
	}

	return found
}

// walk calls visit with the path of every file of the repository, relative to its root. It leaves out build results and Git's data.
func walk(t *testing.T, visit func(path string)) {
	t.Helper()

	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}

		top, _, _ := strings.Cut(relative, string(filepath.Separator))

		switch {
		case entry.IsDir() && slices.Contains([]string{".git", ".bin", "bin", "dist", ".sandbox"}, top):
			return filepath.SkipDir
		case !entry.IsDir():
			visit(filepath.ToSlash(relative))
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// matches returns the text of all nonempty groups in all matches.
func matches(pattern *regexp.Regexp, content string) []string {
	var found []string

	for _, match := range pattern.FindAllStringSubmatch(content, -1) {
		found = append(found, strings.Join(match[1:], ""))
	}

	return found
}
