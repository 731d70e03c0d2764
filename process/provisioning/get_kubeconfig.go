package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
)

// getKubeconfig proves that the runtime answers to whoever gets its kubeconfig. The kubeconfig itself is not kept.
type getKubeconfig struct {
	access RuntimeAccess
}

// RuntimeAccess checks whether an instance's runtime answers. Its errors are of package failure.
type RuntimeAccess interface {
	Probe(ctx context.Context, instance environment.Instance) error
}

// Name implements process.Step.
func (getKubeconfig) Name() string { return "Get_Kubeconfig" }

// Run implements process.Step.
func (s getKubeconfig) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	if err := s.access.Probe(ctx, operation.Data.Instance); err != nil {
		return operation, 0, err
	}

	operation.Data.Instance.Request = environment.Request{} // nobody needs it from here on, and the instance keeps it
	operation.Description = "Runtime is ready"

	return operation, 0, nil
}
