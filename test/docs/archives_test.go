package docs_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/test/docs/markdown"
)

// archive is a release archive in the GoReleaser configuration.
type archive struct {
	ID    string   `json:"id"`
	IDs   []string `json:"ids"`
	Files []struct {
		Source      string `json:"src"`
		Destination string `json:"dst"`
		Info        struct {
			Time string `json:"mtime"`
		} `json:"info"`
	} `json:"files"`
}

// embedded returns the entries of resources/ that are embedded in programs and therefore not needed in archives.
func embedded() []string {
	return []string{"catalog.yaml", "plans", "platforms.yaml", "providers", "releases", "resources.go"}
}

// TestArchivesHaveAllResources checks that the archive of the services contains every file that operators install, as the page on
// verification says. The configuration must name folders, not patterns: GoReleaser's `FOLDER/**/*` leaves out the files directly
// in the folder, so a release would lack the systemd units and the metadata of the chart.
func TestArchivesHaveAllResources(t *testing.T) {
	var release struct {
		Archives []archive `json:"archives"`
	}

	if err := yaml.Unmarshal([]byte(markdown.Read(t, root, ".goreleaser.yaml")), &release); err != nil {
		t.Fatal(err)
	}

	index := slices.IndexFunc(release.Archives, func(each archive) bool { return each.ID == "services" })
	if index < 0 || len(release.Archives) != 2 {
		t.Fatalf("a release has the archives %+v", release.Archives)
	}

	contents := map[string]bool{}

	for _, each := range release.Archives {
		for _, file := range each.Files {
			if strings.ContainsAny(file.Source, "*?[{") {
				t.Errorf("the archive %s has the pattern %s, want a file or a folder", each.ID, file.Source)
			}

			if file.Info.Time != "{{ .CommitDate }}" {
				t.Errorf("the archive %s: %s has the time %q, so two builds of a commit differ", each.ID, file.Source, file.Info.Time)
			}
		}
	}

	for _, file := range release.Archives[index].Files {
		source := file.Source
		if source == "bin/chart/environment-broker" { // `make chart` unpacks the packaged chart there
			source = file.Destination
		}

		for _, path := range filesOf(t, source) {
			contents[path] = true
		}
	}

	for _, path := range filesOf(t, "resources") {
		entry := strings.Split(path, "/")[1]
		if is := slices.Contains(embedded(), entry); contents[path] == is {
			t.Errorf("%s: in the archive: %t, want %t", path, contents[path], !is)
		}
	}

	if len(contents) < 50 || !contents["LICENSE"] || !contents["resources/systemd/environment-broker@.service"] {
		t.Errorf("the archive has %d files: the test looks for the wrong ones", len(contents))
	}
}

// filesOf returns the paths, relative to the repository, of a file or of all files in a folder.
func filesOf(t *testing.T, path string) []string {
	t.Helper()

	var found []string

	err := filepath.WalkDir(filepath.Join(root, path), func(each string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		relative, err := filepath.Rel(root, each)
		found = append(found, filepath.ToSlash(relative))

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return found
}
