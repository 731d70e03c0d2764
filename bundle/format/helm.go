package format

import (
	"context"
	"io/fs"

	"github.com/environment-broker/environment-broker/bundle/renderer"
)

// Helm is the helm+v3 format: a chart at the root of the bundle or in a top-level folder, with its dependencies in charts/. A
// separate class of BundleDeployments renders the chart.
type Helm struct {
	Renderer *renderer.Renderer
}

// Convert loads the chart to check it, and returns the bundle unchanged. It does not render the chart, because the values are not
// known yet.
func (h Helm) Convert(ctx context.Context, bundle fs.FS) (fs.FS, error) {
	return bundle, h.Renderer.CheckChart(ctx, bundle)
}
