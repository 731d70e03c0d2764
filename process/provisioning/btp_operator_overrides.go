package provisioning

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// btpOperatorOverrides sets the tenant's Service Manager credentials in Kyma's btp-operator component. They are secret, so they are
// never stored with the installation. The step that orders the runtime is therefore in the same stage; a repeated stage sets the
// credentials again.
func btpOperatorOverrides() Step {
	return process.Action("BTPOperatorOverrides", "", func(_ context.Context, operation Operation) error {
		operation.Data.Instance.OverrideServiceManager()

		return nil
	})
}
