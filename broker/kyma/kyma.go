package kyma

import (
	"context"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// Kyma completes the Kyma configuration of instances. It is safe for concurrent use.
type Kyma struct {
	// Catalog contains the plans, which can change while the broker runs.
	Catalog *catalog.Catalog
	// Version is the default version of Kyma.
	Version string
	// VersionsNamespace and VersionsName identify the ConfigMap in the control plane with the versions of accounts. An empty name
	// means that all accounts get the default version.
	VersionsNamespace, VersionsName string
	// ControlPlane reads the configuration that operators have stored in the control plane. Nil means that only the catalog
	// configures Kyma.
	ControlPlane *ControlPlane
	// ShootDomain is the parent domain of the clusters' domains, or empty.
	ShootDomain string
}

// Complete returns the instance's Kyma configuration with the version and the installation filled in, or nil for an instance
// without Kyma. It keeps a version that is already set, and changes nothing if Lifecycle Manager installs Kyma. Errors carry a
// failure.Kind.
func (k Kyma) Complete(ctx context.Context, instance environment.Instance) (*environment.Kyma, error) {
	wanted := instance.Request.Cluster.Kyma
	if wanted == nil || wanted.InstalledBy(environment.InstallerLifecycleManager) { // Lifecycle Manager needs no version
		return wanted, nil
	}

	plan, known := k.Catalog.ByID(instance.PlanID)
	if !known {
		return nil, failure.New(failure.Permanent, "the catalog no longer has plan %s: an operator must restore it", instance.PlanName)
	}

	completed := *wanted

	var err error
	if completed.Version == "" {
		if completed.Version, err = k.version(ctx, instance); err != nil {
			return nil, err
		}
	}

	if completed.Installation, err = plan.Installation(completed); err != nil || k.ControlPlane == nil {
		return &completed, err
	}

	return &completed, k.addComponents(ctx, plan.Name, &completed)
}
