package docs_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/environment-broker/environment-broker/test/docs/markdown"
)

// stage is a stage of a Dockerfile: its base, and the instructions after FROM.
type stage struct {
	base         string
	instructions []string
}

func stages(t *testing.T, path string) []stage {
	t.Helper()

	var all []stage

	for line := range strings.Lines(markdown.Read(t, root, path)) {
		words := strings.Fields(line)

		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case words[0] == "FROM":
			all = append(all, stage{base: words[1]})
		case len(all) > 0:
			all[len(all)-1].instructions = append(all[len(all)-1].instructions, strings.TrimSpace(line))
		}
	}

	return all
}

// TestImages checks that images contain nothing but the programs for production: the last stage starts from scratch and only
// copies files. No stage may refer to its base image by tag alone, because others can move a tag.
func TestImages(t *testing.T) {
	for path, from := range map[string]string{
		"Dockerfile": "--from=build /out/", "Dockerfile.release": "${TARGETPLATFORM}/", "Dockerfile.sandbox": "${TARGETPLATFORM}/",
	} {
		all := stages(t, path)

		for _, each := range all {
			if each.base != "scratch" && each.base != "${GO_IMAGE}" && !strings.Contains(each.base, "@sha256:") {
				t.Errorf("%s: the base %s is named by tag", path, each.base)
			}
		}

		last := all[len(all)-1]
		if last.base != "scratch" {
			t.Errorf("%s: the image is built from %s, want scratch", path, last.base)
		}

		copies := slices.DeleteFunc(slices.Clone(last.instructions), func(line string) bool {
			return !strings.HasPrefix(line, "COPY ") && !strings.HasPrefix(line, "ADD ") && !strings.HasPrefix(line, "RUN ")
		})
		if diff := cmp.Diff([]string{"COPY " + from + " /usr/local/bin/"}, copies); diff != "" {
			t.Errorf("%s: -want +got\n%s", path, diff)
		}
	}

	want := []string{"broker", "bundler", "ebctl", "provisioner"}

	var built []string

	for _, found := range regexp.MustCompile(`\./cmd/(\w+)`).FindAllStringSubmatch(strings.Join(stages(t, "Dockerfile")[0].instructions, "\n"), -1) {
		built = append(built, found[1])
	}

	slices.Sort(built)

	if diff := cmp.Diff(want, built); diff != "" {
		t.Errorf("programs in the image of Dockerfile: -want +got\n%s", diff)
	}

	var release struct {
		Dockers []struct {
			ID         string   `json:"id"`
			IDs        []string `json:"ids"`
			Dockerfile string   `json:"dockerfile"`
			Platforms  []string `json:"platforms"`
			SBOM       string   `json:"sbom"`
		} `json:"dockers_v2"`
	}

	if err := yaml.Unmarshal([]byte(markdown.Read(t, root, ".goreleaser.yaml")), &release); err != nil || len(release.Dockers) != 2 {
		t.Fatalf("reading the images of a release: %+v, %v", release, err)
	}

	for _, image := range release.Dockers {
		slices.Sort(image.IDs)

		expected := map[string][]string{"services": want, "sandbox": {"sandbox"}}[image.ID]
		file := map[string]string{"services": "Dockerfile.release", "sandbox": "Dockerfile.sandbox"}[image.ID]

		if !slices.Equal(expected, image.IDs) || image.Dockerfile != file {
			t.Errorf("the image %s has the programs %v by %s, want %v by %s", image.ID, image.IDs, image.Dockerfile, expected, file)
		}

		if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, image.Platforms); diff != "" || image.SBOM != "true" {
			t.Errorf("the image %s has the SBOM %q and platforms: -want +got\n%s", image.ID, image.SBOM, diff)
		}

		checkImage(t, file, expected)
	}

	checkImage(t, "Dockerfile", want)
}

// checkImage checks that an image starts one of its programs as an unprivileged user. The user is given by ID, because the image
// has no /etc/passwd.
func checkImage(t *testing.T, file string, programs []string) {
	t.Helper()

	all := stages(t, file)
	last := all[len(all)-1].instructions
	command := regexp.MustCompile(`^CMD \["/usr/local/bin/(\w+)"\]$`).FindStringSubmatch(last[len(last)-1])

	if command == nil || !slices.Contains(programs, command[1]) {
		t.Errorf("%s: the image starts %s, but has the programs %v", file, last[len(last)-1], programs)
	}

	user := slices.Index(last, "USER 65532:65532")
	folder := slices.IndexFunc(last, func(line string) bool { return strings.HasPrefix(line, "WORKDIR ") })

	if user < 0 || folder >= 0 && folder < user {
		t.Errorf("%s: the instructions %v do not set the user before the folder that it owns", file, last)
	}
}

// TestPrograms checks that each program contains CA certificates and time zones, which the images lack, and needs no C library.
func TestPrograms(t *testing.T) {
	for _, name := range []string{"broker", "provisioner", "bundler", "ebctl", "sandbox"} {
		command := exec.CommandContext(t.Context(), "go", "list", "-buildvcs=false", "-deps", "./cmd/"+name)
		command.Dir = root
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")

		output, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}

		packages := strings.Fields(string(output))
		for _, needed := range []string{"golang.org/x/crypto/x509roots/fallback", "time/tzdata"} {
			if !slices.Contains(packages, needed) {
				t.Errorf("%s does not contain %s", name, needed)
			}
		}

		if slices.Contains(packages, "runtime/cgo") {
			t.Errorf("%s needs a C library", name)
		}
	}
}
