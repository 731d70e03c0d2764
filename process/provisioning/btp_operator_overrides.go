package provisioning

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// btpOperatorOverrides sets the tenant's credentials for Service Manager in the component btp-operator of Kyma. They are secret,
// so they are never stored with the installation. The order therefore follows in the same stage, and a repeated stage sets them
// again.
func btpOperatorOverrides() Step {
	return process.Action("BTPOperatorOverrides", "", func(_ context.Context, operation Operation) error {
		operation.Data.Instance.OverrideServiceManager()

		return nil
	})
}
