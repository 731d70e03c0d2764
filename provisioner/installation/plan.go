package installation

import (
	"context"
	"fmt"
	"io"

	"github.com/dustin/go-humanize/english"
	"k8s.io/client-go/rest"

	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// Plan lists the components to install, in installation order. It contains secret values in plaintext, so it is neither stored
// nor logged.
type Plan struct {
	// Version is the version of the release.
	Version string
	// Profile is the profile of the order, or empty.
	Profile    string
	Components []Component
}

// Installed returns the message about a finished installation.
func (p Plan) Installed() string {
	return fmt.Sprintf("release %s is installed: %s", p.Version, english.Plural(len(p.Components), "component", ""))
}

// Component is one component of a plan.
type Component struct {
	Name      string
	Namespace string
	// Source identifies the component's manifests. Its form depends on the implementation of Releases.
	Source string
	// DependsOn names the components that must be ready before this component is applied. They precede the component in the plan.
	DependsOn []string
	// Values replace the placeholders in the manifests. Values from the order override values from the release.
	Values map[string]string
	// SecretKeys are the keys of the secret values. Messages never contain these values.
	SecretKeys []string
	// Optional reports whether the release works without the component.
	Optional bool
	// External reports that the manifests do not come from a release.
	External bool
}

// Format implements fmt.Formatter. It omits the values for every verb, so that logs cannot contain secrets.
func (c Component) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, c.Name+" from "+c.Source+" in namespace "+c.Namespace)
}

// Releases converts orders to plans. Errors come from package failure. The error for an invalid order is a failure.Invalid that
// lists all problems.
type Releases interface {
	// Plan returns the plan for the release and the components of the order. The same order results in the same plan.
	Plan(ctx context.Context, order spec.Kyma) (Plan, error)
}

// NamespaceKey is the key of the component's namespace, a value that the manifests of every component can use.
const NamespaceKey = "namespace"

// Progress is the result of one call to an Installer. Message describes the state of the installation to users.
type Progress struct {
	Done    bool
	Message string
}

// Target is the cluster on which an operation installs or uninstalls Kyma.
type Target struct {
	RuntimeID string
	ShootName string
	// OperationID identifies the operation. A component that failed in an earlier operation is retried immediately.
	OperationID string
	// Cluster is a client configuration with cluster-admin rights, valid for a few minutes.
	Cluster *rest.Config
}

// Manifests provides the manifests of components. releases.Catalog implements it. Errors come from package failure.
type Manifests interface {
	// Manifests returns the files for Component.Source. It must return the same content on every call.
	Manifests(ctx context.Context, source string) ([]ManifestFile, error)
}

// Installer installs plans on clusters. Each call does a bounded amount of work, so callers repeat it until Progress.Done. A call
// after a crash continues the work. Errors come from package failure.
type Installer interface {
	// Install applies the plan, and removes the objects that an earlier plan of this runtime contained and this plan omits.
	Install(ctx context.Context, target Target, plan Plan) (Progress, error)
	// Uninstall removes all installed objects, in reverse order. If nothing is installed, the first call reports Done.
	Uninstall(ctx context.Context, target Target) (Progress, error)
}
