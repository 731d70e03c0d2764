package update

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// btpOperatorOverrides sets the tenant's credentials for Service Manager in the component btp-operator of Kyma. They are secret, so they
// are never stored with the installation: the order follows in the same stage, and a repeated stage sets them again.
func btpOperatorOverrides() Step {
	return process.Action("BTPOperatorOverrides", "", func(_ context.Context, operation Operation) error {
		changed, err := updated(operation)
		if err != nil {
			return err
		}

		changed.OverrideServiceManager()

		return nil
	})
}
