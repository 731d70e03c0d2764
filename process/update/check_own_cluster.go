package update

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// checkOwnCluster checks that the tenant's own cluster responds to the kubeconfig in the update.
func checkOwnCluster(access RuntimeAccess) Step {
	return process.Action("Check_Own_Cluster", "", func(ctx context.Context, operation Operation) error {
		updated := operation.Data.Instance
		updated.Request.Cluster = operation.Data.Update.Cluster

		return access.Probe(ctx, updated)
	})
}
