package update

import (
	"context"

	"github.com/environment-broker/environment-broker/process"
)

// getKubeconfig checks that the runtime responds to a client that uses its kubeconfig, before the update changes Kyma or writes to the
// runtime. The kubeconfig is not stored.
func getKubeconfig(access RuntimeAccess) Step {
	return process.Action("Get_Kubeconfig", "", func(ctx context.Context, operation Operation) error {
		changed, err := operation.Data.Changed()
		if err != nil {
			return err
		}

		return access.Probe(ctx, changed)
	})
}
