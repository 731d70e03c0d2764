package provisioning

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// busolaMigratorOverrides sets the values of Kyma's busola-migrator component. They depend only on the instance.
func busolaMigratorOverrides() Step {
	return process.Action("BusolaMigratorOverrides", "", func(_ context.Context, operation Operation) error {
		operation.Data.Instance.OverrideBusola()

		return nil
	})
}
