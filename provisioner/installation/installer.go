package installation

import (
	"context"

	"k8s.io/client-go/rest"
)

// Progress is how far it is. Message is for people.
type Progress struct {
	Done    bool
	Message string
}

// Installer carries plans out on a cluster. Each call does a bounded piece of work and returns; it may be called again from the start
// after any crash. Its errors are of package failure.
type Installer interface {
	// Install makes the cluster hold what the plan says and nothing that a former plan said and this one does not.
	Install(ctx context.Context, cluster *rest.Config, runtimeID string, plan Plan) (Progress, error)
	// Uninstall removes what was installed, in the reverse order. It is done as well where nothing was ever installed.
	Uninstall(ctx context.Context, cluster *rest.Config, runtimeID string) (Progress, error)
}
