package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// RuntimeAccess checks whether an instance's runtime answers. Its errors come from package failure.
type RuntimeAccess interface {
	Probe(ctx context.Context, instance environment.Instance) error
}

// getKubeconfig checks that the runtime answers to a client with its kubeconfig. The kubeconfig itself is not stored.
func getKubeconfig(access RuntimeAccess) Step {
	return process.StepFunc("Get_Kubeconfig",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if err := access.Probe(ctx, operation.Data.Instance); err != nil {
				return operation, 0, err
			}

			operation.Data.Instance.Request = environment.Request{} // no later step needs it, and the instance's row keeps it
			operation.Description = "Runtime is ready"

			return operation, 0, nil
		})
}
