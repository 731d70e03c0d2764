package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdxjson "github.com/spdx/tools-golang/json"
)

const version = "1.2.3"

// programs returns a folder with programs for both architectures. For the architecture of this machine, they are copies of this
// command, so that they contain modules and can run. For the other one, they are minimal programs, because building more would
// take long.
func programs(t *testing.T) string {
	t.Helper()

	folder := t.TempDir()
	small := filepath.Join(folder, "main.go")

	if err := os.WriteFile(small, []byte("package main\n\nfunc main() { println(\"started\") }\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	native, err := exec.CommandContext(t.Context(), "go", "env", "GOHOSTARCH").Output()
	if err != nil {
		t.Fatal(err)
	}

	for _, architecture := range architectures() {
		source := small
		if architecture == strings.TrimSpace(string(native)) {
			source = "."
		}

		target := filepath.Join(folder, "linux_"+architecture)
		build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(target, "broker"), source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)

		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building a program: %v\n%s", err, output)
		}

		for _, image := range images() {
			for _, name := range image.programs {
				if err := os.Link(filepath.Join(target, "broker"), filepath.Join(target, name)); err != nil && !errors.Is(err, os.ErrExist) {
					t.Fatal(err)
				}
			}
		}
	}

	return folder
}

// opened is a layout that the test has read.
type opened struct {
	index v1.ImageIndex
	// images are the images by architecture.
	images map[string]v1.Image
	// boms are the SBOMs by the digest of the image to which they refer.
	boms map[v1.Hash]v1.Image
	tag  string
}

func open(t *testing.T, folder string) opened {
	t.Helper()

	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}

	if err := validate.Index(index); err != nil {
		t.Errorf("the layout is invalid: %v", err)
	}

	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}

	found := opened{images: map[string]v1.Image{}, boms: map[v1.Hash]v1.Image{}}

	for _, each := range manifest.Manifests {
		if each.MediaType.IsIndex() {
			found.tag = each.Annotations["org.opencontainers.image.ref.name"]

			if found.index, err = index.ImageIndex(each.Digest); err != nil {
				t.Fatal(err)
			}

			continue
		}

		bom := imageOf(t, index, each.Digest)
		found.boms[manifestOf(t, bom).Subject.Digest] = bom
	}

	platforms, err := found.index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}

	for _, each := range platforms.Manifests {
		found.images[each.Platform.OS+"/"+each.Platform.Architecture] = imageOf(t, found.index, each.Digest)
	}

	return found
}

func imageOf(t *testing.T, index v1.ImageIndex, digest v1.Hash) v1.Image {
	t.Helper()

	found, err := index.Image(digest)
	if err != nil {
		t.Fatal(err)
	}

	return found
}

func manifestOf(t *testing.T, image v1.Image) *v1.Manifest {
	t.Helper()

	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}

	return manifest
}

// unpack writes the files of an image to a new folder, and returns the folder and the names of the files.
func unpack(t *testing.T, image v1.Image) (folder string, files []string) {
	t.Helper()

	folder = t.TempDir()
	if err := os.Chmod(folder, executable); err != nil {
		t.Fatal(err)
	}

	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("the image has %d layers: %v", len(layers), err)
	}

	packed, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()

	content, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}

	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return folder, files
		}

		if err != nil {
			t.Fatal(err)
		}

		if header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(filepath.Join(folder, header.Name), executable); err != nil {
				t.Fatal(err)
			}

			continue
		}

		if header.Uid != 0 || header.Mode != executable {
			t.Errorf("%s belongs to user %d with mode %o: the user of the image could replace it", header.Name, header.Uid, header.Mode)
		}

		files = append(files, header.Name)

		program, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(filepath.Join(folder, header.Name), program, executable); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLayouts reads the layouts back. The images have both architectures, one SBOM each, and a user without rights.
func TestLayouts(t *testing.T) {
	t.Parallel()

	built, out := programs(t), t.TempDir()
	arguments := []string{"-programs", built, "-out", out, "-version", version}

	if err := run(arguments, "1700000000"); err != nil {
		t.Fatal(err)
	}

	for _, described := range images() {
		found := open(t, filepath.Join(out, described.name))
		if found.tag != version || len(found.images) != 2 || len(found.boms) != 2 {
			t.Fatalf("%s has the tag %q, the images %v and %d SBOMs", described.name, found.tag, found.images, len(found.boms))
		}

		for platform, made := range found.images {
			config, err := made.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}

			if config.OS+"/"+config.Architecture != platform || config.Config.User != "65532:65532" ||
				!slices.Equal(config.Config.Cmd, []string{"/usr/local/bin/" + described.programs[0]}) {
				t.Errorf("%s for %s has the configuration %+v", described.name, platform, config.Config)
			}

			folder, files := unpack(t, made)

			want := make([]string, 0, len(described.programs))
			for _, name := range described.programs {
				want = append(want, programsFolder+"/"+name)
			}

			if diff := cmp.Diff(want, files); diff != "" {
				t.Errorf("%s for %s: -want +got\n%s", described.name, platform, diff)
			}

			digest, err := made.Digest()
			if err != nil {
				t.Fatal(err)
			}

			modules := modulesOf(t, found.boms[digest])

			if described.name == "environment-broker" && strings.HasSuffix(platform, hostArchitecture(t)) {
				checkStart(t, folder, config.Config.Cmd[0])

				if !slices.Contains(modules, "github.com/google/go-containerregistry") {
					t.Errorf("the SBOM does not list a module of the programs: %v", modules)
				}
			}
		}
	}

	before := open(t, filepath.Join(out, "sandbox"))

	if err := run(arguments, "1700000000"); err != nil {
		t.Fatal(err)
	}

	for platform, made := range open(t, filepath.Join(out, "sandbox")).images {
		if manifestOf(t, made).Layers[0].Digest != manifestOf(t, before.images[platform]).Layers[0].Digest {
			t.Errorf("%s: the same programs result in another layer", platform)
		}
	}
}

func hostArchitecture(t *testing.T) string {
	t.Helper()

	native, err := exec.CommandContext(t.Context(), "go", "env", "GOHOSTARCH").Output()
	if err != nil {
		t.Fatal(err)
	}

	return strings.TrimSpace(string(native))
}

// modulesOf returns the names of the modules in an SBOM.
func modulesOf(t *testing.T, bom v1.Image) []string {
	t.Helper()

	if manifestOf(t, bom).Config.MediaType != bomType {
		t.Errorf("the SBOM has the type %s", manifestOf(t, bom).Config.MediaType)
	}

	layers, err := bom.Layers()
	if err != nil {
		t.Fatal(err)
	}

	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()

	document, err := spdxjson.Read(content)
	if err != nil {
		t.Fatal(err)
	}

	names := make([]string, 0, len(document.Packages))
	for _, each := range document.Packages {
		names = append(names, each.PackageName)
	}

	if !slices.Contains(names, "stdlib") {
		t.Errorf("the SBOM lists %v", names)
	}

	return names
}

// checkStart starts a program of an unpacked image. If the test runs as root, the program starts as in a container engine: with the image as its file
// system, and as the user of the image.
func checkStart(t *testing.T, folder, program string) {
	t.Helper()

	command := exec.CommandContext(t.Context(), filepath.Join(folder, program))
	if os.Geteuid() == 0 {
		command = exec.CommandContext(t.Context(), program)
		command.Dir = "/"
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: folder, Credential: &syscall.Credential{Uid: user, Gid: user}}
	}

	output, err := command.CombinedOutput()

	var exit *exec.ExitError
	if !errors.As(err, &exit) || !bytes.Contains(output, []byte("-programs, -out and -version are required")) {
		t.Errorf("the program of the image does not start: %v: %s", err, output)
	}
}

func TestRefusedPrograms(t *testing.T) {
	t.Parallel()

	swapped := t.TempDir()
	built := programs(t)

	for from, to := range map[string]string{"amd64": "arm64", "arm64": "amd64"} {
		if err := os.Rename(filepath.Join(built, "linux_"+from), filepath.Join(swapped, "linux_"+to)); err != nil {
			t.Fatal(err)
		}
	}

	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"Architecture": {[]string{"-programs", swapped, "-out", t.TempDir(), "-version", version}, "GOARCH=arm64, want amd64"},
		"Missing":      {[]string{"-programs", t.TempDir(), "-out", t.TempDir(), "-version", version}, "no such file"},
		"Version":      {[]string{"-programs", swapped, "-out", t.TempDir()}, "are required"},
	} {
		if err := run(test.arguments, ""); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}
