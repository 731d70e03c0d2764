package format

import (
	"context"
	"io/fs"

	"github.com/environment-broker/environment-broker/bundle/renderer"
)

// Helm is the format helm+v3: a chart at the root of the bundle or in a folder there, with its dependencies in charts/. A separate
// class of BundleDeployments renders the chart.
type Helm struct {
	Renderer *renderer.Renderer
}

// Convert loads the chart and returns the bundle unchanged. It renders nothing, because the values are unknown.
func (h Helm) Convert(ctx context.Context, bundle fs.FS) (fs.FS, error) {
	return bundle, h.Renderer.CheckChart(ctx, bundle)
}
