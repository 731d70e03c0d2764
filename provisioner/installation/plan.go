package installation

import (
	"context"
	"fmt"
	"io"

	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Plan is a list of components to install, in order. It contains secret values in clear text: store it sealed only, and never log it.
type Plan struct {
	Version    string
	Profile    string
	Components []Component
}

// Component is one part of a plan.
type Component struct {
	Name      string
	Namespace string
	// Source names the manifests of the component. Only the catalog that made the plan understands it.
	Source string
	// DependsOn names the components that must be ready before this one starts. They come before it in the plan.
	DependsOn []string
	// Values replace placeholders in the manifests: those of the release, overridden by those of the order.
	Values map[string]string
	// SecretKeys are the keys of secret values. Messages never contain these values.
	SecretKeys []string
	// Optional says that the release works without the component.
	Optional bool
}

// Format prints no values, whatever the verb.
func (c Component) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, c.Name+" from "+c.Source+" in namespace "+c.Namespace)
}

// Releases plans the installation of the release that an order names. It returns errors of package failure; a wrong order is of kind Invalid.
type Releases interface {
	Plan(ctx context.Context, order spec.Kyma) (Plan, error)
}

// Progress is the result of one call. Message is for users.
type Progress struct {
	Done    bool
	Message string
}

// Installer installs plans on a cluster. Each call does a bounded amount of work; call it again until Progress.Done, also after a crash.
// Its errors are of package failure.
type Installer interface {
	// Install applies the plan and removes the objects that only a former plan contains.
	Install(ctx context.Context, cluster *rest.Config, runtimeID string, plan Plan) (Progress, error)
	// Uninstall removes all installed objects, in reverse order. It is done at once if nothing was ever installed.
	Uninstall(ctx context.Context, cluster *rest.Config, runtimeID string) (Progress, error)
}
