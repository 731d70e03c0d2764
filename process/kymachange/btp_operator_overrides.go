package kymachange

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// BTPOperatorOverrides returns the step that sets the tenant's credentials for Service Manager in the component btp-operator of Kyma.
// They are secret, so they are never stored with the installation: the order must follow in the same stage, and a repeated stage sets
// them again.
func BTPOperatorOverrides() Step {
	return process.Action("BTPOperatorOverrides", "", func(_ context.Context, operation Operation) error {
		changed, err := operation.Data.Changed()
		if err != nil {
			return err
		}

		changed.OverrideServiceManager()

		return nil
	})
}
