package kyma

import (
	"context"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
)

// Kyma completes the Kyma of instances. It is safe for concurrent use.
type Kyma struct {
	// Catalog has the plans, which change while the broker runs.
	Catalog *catalog.Catalog
	// Version is the default version.
	Version string
}

// Complete returns the Kyma of an instance with its version and its installation, or nil for an instance without Kyma. It keeps a
// version that is already set. Errors are of package failure.
func (k Kyma) Complete(_ context.Context, instance environment.Instance) (*environment.Kyma, error) {
	wanted := instance.Request.Cluster.Kyma
	if wanted == nil {
		return nil, nil //nolint:nilnil // an instance without Kyma
	}

	plan, known := k.Catalog.ByID(instance.PlanID)
	if !known {
		return nil, failure.New(failure.Permanent, "the catalog no longer has plan %s: an operator has to restore it", instance.PlanName)
	}

	completed := *wanted
	if completed.Version == "" {
		completed.Version = k.Version
	}

	var err error
	completed.Installation, err = plan.Installation(completed)

	return &completed, err
}
