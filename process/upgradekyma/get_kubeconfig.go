package upgradekyma

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// getKubeconfig checks that the runtime responds to a client that uses its kubeconfig, before the upgrade changes anything. The
// kubeconfig is not stored.
func getKubeconfig(access RuntimeAccess) Step {
	return process.Action("Get_Kubeconfig", "", func(ctx context.Context, operation Operation) error {
		return access.Probe(ctx, operation.Data.Instance)
	})
}
