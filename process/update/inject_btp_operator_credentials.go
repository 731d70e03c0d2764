package update

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// injectCredentials writes the changed Service Manager credentials to the runtime.
func injectCredentials(access RuntimeAccess) Step {
	return process.Action("Inject_BTP_Operator_Credentials", "", func(ctx context.Context, operation Operation) error {
		changed, err := operation.Data.Changed()
		if err != nil {
			return err
		}

		return access.ApplyServiceManager(ctx, changed, *changed.Request.Cluster.ServiceManager)
	})
}
