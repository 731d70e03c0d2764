package installation

import (
	"context"

	"github.com/environment-broker/environment-broker/provisioner/graph/model"
)

// Plan is what is to be installed, in order. Secret values stand in it in clear: it is never stored but sealed, never logged.
type Plan struct {
	Version    string
	Profile    string
	Components []Component
}

// Component is one part of a plan.
type Component struct {
	Name      string
	Namespace string
	// Source is where the component's manifests are found: a name that only the catalog that made the plan understands.
	Source string
	// DependsOn names the components that are ready before this one begins. They come before it in the plan.
	DependsOn []string
	// Values are what is filled into the manifests: the release's, with the order's over them.
	Values map[string]string
	// Optional tells that the release can do without it.
	Optional bool
}

// Releases finds the release that an order names and makes the plan of it. Its errors are of package failure, kind Invalid where the
// order is wrong.
type Releases interface {
	Plan(ctx context.Context, order model.KymaConfigInput) (Plan, error)
}
