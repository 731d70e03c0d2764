// Package kymachange contains the steps that the update and upgradekyma processes share. Both processes send a changed Kyma
// configuration for an existing runtime to its installer. Each step has its own file. The notes for operators also describe the
// steps of the provisioning process that make the same changes to an order.
package kymachange

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// Operation is the input and the result of the steps. Its data has an update with the changed Kyma configuration.
type Operation = process.Operation[environment.Data]

// Step is a step that changes Kyma. Its data is environment.Data.
type Step = process.Step[environment.Data]

// Kyma determines the Kyma configuration for an instance's runtime.
type Kyma interface {
	// Complete returns the instance's Kyma configuration with the installation and the version filled in. It keeps a version that
	// is already set. If the instance has no Kyma, it returns nil.
	Complete(ctx context.Context, instance environment.Instance) (*environment.Kyma, error)
	// Overrides returns the instance's completed Kyma configuration with the values that operators have set.
	Overrides(ctx context.Context, instance environment.Instance) (*environment.Kyma, error)
}
