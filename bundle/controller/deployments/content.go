package deployments

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/format"
)

// Release is an installation of a Bundle.
type Release struct {
	// Name is the name of the BundleDeployment. Namespace is the namespace for objects that do not specify one.
	Name, Namespace string
	Bundle          *v1alpha1.Bundle
	// Config is spec.config as JSON. It may be empty.
	Config []byte
	// Version returns the Kubernetes version of the target, such as v1.36.0.
	Version func(ctx context.Context) (string, error)
}

// Fetcher gets the content of a Bundle.
type Fetcher interface {
	// Fetch unpacks the archive at a contentURL into a folder. If digest is not empty, the archive must have this digest.
	Fetch(ctx context.Context, contentURL, digest string, into *os.Root) error
}

// Plain implements Content for the format plain+v0, to which Bundle controllers convert most other formats.
type Plain struct {
	Fetcher Fetcher
	// Folder is the folder for temporary files. If it is empty, the system's folder is used.
	Folder string
}

// Load implements Content. It does not cache anything, so the content of a Bundle is fetched again for each comparison.
func (p Plain) Load(ctx context.Context, release Release) (loaded Loaded, err error) {
	err = fetch(ctx, p.Fetcher, p.Folder, release.Bundle, func(content fs.FS) error {
		if loaded.Objects, err = format.Objects(content); err != nil {
			return err
		}

		loaded.Masked, err = format.Masked(content, loaded.Objects)

		return err
	})

	return loaded, err
}

// fetch unpacks the content of a Bundle into a temporary folder, passes the folder to use, and then removes it.
func fetch(ctx context.Context, fetcher Fetcher, temporary string, bundle *v1alpha1.Bundle, use func(fs.FS) error) error {
	folder, err := os.MkdirTemp(temporary, "content-")
	if err != nil {
		return fmt.Errorf("creating a temporary folder for the content: %w", err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // only space is lost

	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("opening the temporary folder for the content: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is written through the folder itself

	if err := fetcher.Fetch(ctx, bundle.Status.ContentURL, bundle.Status.Digest, root); err != nil {
		return err
	}

	return use(root.FS())
}
