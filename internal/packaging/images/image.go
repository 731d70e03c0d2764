package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// user is the user ID and the group ID of the running programs. The image gives this ID neither a name nor privileges.
	user = 65532
	// programsFolder is the folder in the image that contains the programs.
	programsFolder = "usr/local/bin"
	source         = "https://github.com/environment-broker/environment-broker"
	executable     = 0o755
)

// image describes a container image. By default, its containers start the first of the programs.
type image struct {
	name     string
	programs []string
	// folder is the working directory, which belongs to user. Empty means no working directory.
	folder string
	env    []string
	ports  []string
}

// images returns the images of a release.
func images() []image {
	return []image{
		{
			name: "environment-broker", programs: []string{"broker", "provisioner", "bundler", "ebctl"},
			ports: []string{"8080/tcp", "8071/tcp", "3000/tcp", "3001/tcp", "8443/tcp", "8081/tcp"},
		},
		{
			name: "sandbox", programs: []string{"sandbox"}, folder: "sandbox", env: []string{"SANDBOX_DIR=/sandbox"},
			ports: []string{"8080/tcp", "8071/tcp", "3000/tcp", "3001/tcp"},
		},
	}
}

func architectures() []string { return []string{"amd64", "arm64"} }

// write replaces the OCI layout in folder. The new layout contains an index of the images for all architectures, tagged with the
// version, and an SBOM for each of these images.
func (o order) write(described image, folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the previous layout: %w", err)
	}

	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)

	written, err := layout.Write(folder, index)
	if err != nil {
		return fmt.Errorf("creating the layout: %w", err)
	}

	var boms []v1.Image

	for _, architecture := range architectures() {
		made, err := o.image(described, architecture)
		if err != nil {
			return err
		}

		bom, err := o.bom(described, architecture, made)
		if err != nil {
			return err
		}

		boms = append(boms, bom)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: made, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
	}

	if err := written.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.version})); err != nil {
		return fmt.Errorf("writing the images: %w", err)
	}

	for _, bom := range boms {
		if err := written.AppendImage(bom); err != nil {
			return fmt.Errorf("writing an SBOM: %w", err)
		}
	}

	return nil
}

// folderOf returns the input folder that contains the programs for the given architecture.
func (o order) folderOf(architecture string) string {
	return filepath.Join(o.programs, "linux_"+architecture)
}

// image returns the image for an architecture. Its only layer contains the programs, which need no other files.
func (o order) image(described image, architecture string) (v1.Image, error) {
	content, err := o.files(described, architecture)
	if err != nil {
		return nil, err
	}

	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compressing the programs: %w", err)
	}

	config := v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), Cmd: []string{"/" + programsFolder + "/" + described.programs[0]}, Env: described.env,
		ExposedPorts: map[string]struct{}{},
		Labels:       map[string]string{"org.opencontainers.image.source": source, "org.opencontainers.image.version": o.version},
	}
	for _, port := range described.ports {
		config.ExposedPorts[port] = struct{}{}
	}

	if described.folder != "" {
		config.WorkingDir = "/" + described.folder
	}

	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)

	configured, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: "linux", Architecture: architecture, Created: v1.Time{Time: o.created}, Config: config, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, fmt.Errorf("configuring the image: %w", err)
	}

	made, err := mutate.Append(configured, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: o.created}, CreatedBy: "images"},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the programs: %w", err)
	}

	return made, nil
}

// files returns a tar archive with the folders and programs of an image. It fails if a program is missing or was built for
// another platform.
func (o order) files(described image, architecture string) ([]byte, error) {
	var content bytes.Buffer

	archive := tar.NewWriter(&content)

	for _, folder := range []string{"usr", "usr/local", programsFolder, described.folder} {
		if folder == "" {
			continue
		}

		header := tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: executable, ModTime: o.created}
		if folder == described.folder {
			header.Uid, header.Gid = user, user
		}

		if err := archive.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("adding the folder %s: %w", folder, err)
		}
	}

	for _, name := range described.programs {
		file := filepath.Join(o.folderOf(architecture), name)
		if err := checkPlatform(file, architecture); err != nil {
			return nil, err
		}

		program, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a program: %w", err)
		}

		header := tar.Header{
			Typeflag: tar.TypeReg, Name: path.Join(programsFolder, name), Mode: executable, Size: int64(len(program)), ModTime: o.created,
		}
		if err := archive.WriteHeader(&header); err != nil {
			return nil, fmt.Errorf("adding %s: %w", name, err)
		}

		if _, err := archive.Write(program); err != nil {
			return nil, fmt.Errorf("adding %s: %w", name, err)
		}
	}

	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("completing the layer: %w", err)
	}

	return content.Bytes(), nil
}

// checkPlatform checks that a program was built for Linux and the given architecture, and that it needs no C library.
func checkPlatform(file, architecture string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the build settings of a program: %w", err)
	}

	wanted := map[string]string{"GOOS": "linux", "GOARCH": architecture, "CGO_ENABLED": "0"}

	for _, setting := range info.Settings {
		if want, is := wanted[setting.Key]; is && setting.Value != want {
			return fmt.Errorf("%s was built with %s=%s, want %s", file, setting.Key, setting.Value, want)
		}
	}

	return nil
}
