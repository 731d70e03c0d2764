package deployments

import (
	"context"
	"fmt"
	"os"

	"github.com/environment-broker/environment-broker/bundle/api/v1alpha1"
	"github.com/environment-broker/environment-broker/bundle/format"
)

// Fetcher gets the content of a Bundle.
type Fetcher interface {
	// Fetch unpacks the archive at a contentURL into a folder. If digest is not empty, the archive must have it.
	Fetch(ctx context.Context, contentURL, digest string, into *os.Root) error
}

// Plain is Content in the format plain+v0, which Bundle controllers of the other formats convert to.
type Plain struct {
	Fetcher Fetcher
	// Folder is the folder for temporary files; empty means that of the system.
	Folder string
}

// Load implements Content. It keeps nothing: the content of a Bundle is read again for each comparison.
func (p Plain) Load(ctx context.Context, bundle *v1alpha1.Bundle) (Loaded, error) {
	folder, err := os.MkdirTemp(p.Folder, "content-")
	if err != nil {
		return Loaded{}, fmt.Errorf("creating a temporary folder for the content: %w", err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // only space is lost

	root, err := os.OpenRoot(folder)
	if err != nil {
		return Loaded{}, fmt.Errorf("opening the temporary folder for the content: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is written through the folder itself

	if err := p.Fetcher.Fetch(ctx, bundle.Status.ContentURL, bundle.Status.Digest, root); err != nil {
		return Loaded{}, err
	}

	objects, err := format.Objects(root.FS())
	if err != nil {
		return Loaded{}, err
	}

	masked, err := format.Masked(root.FS(), objects)

	return Loaded{objects, masked}, err
}
