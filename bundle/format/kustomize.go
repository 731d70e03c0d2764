package format

import (
	"context"
	"io/fs"

	"github.com/environment-broker/environment-broker/bundle/renderer"
)

// Kustomize is the format for a kustomization at the root of the bundle. The kustomization can use only files in the bundle.
type Kustomize struct {
	Renderer *renderer.Renderer
}

// Convert returns a plain+v0 bundle with the objects of the kustomization, in the order in which the kustomization lists them.
func (k Kustomize) Convert(ctx context.Context, bundle fs.FS) (fs.FS, error) {
	objects, err := k.Renderer.Kustomization(ctx, bundle)
	if err != nil {
		return nil, err
	}

	return plainBundle(objects)
}
