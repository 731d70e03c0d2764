package installation

import (
	"context"
	"fmt"
	"io"

	"github.com/environment-broker/environment-broker/provisioner/spec"
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
	// SecretKeys names those of the values that the order calls secret. They appear in no message.
	SecretKeys []string
	// Optional tells that the release can do without it.
	Optional bool
}

// Format prints no values, whatever the verb.
func (c Component) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, c.Name+" from "+c.Source+" in namespace "+c.Namespace)
}

// Releases finds the release that an order names and makes the plan of it. Its errors are of package failure, kind Invalid where the
// order is wrong.
type Releases interface {
	Plan(ctx context.Context, order spec.Kyma) (Plan, error)
}
