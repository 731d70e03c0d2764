package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/operatorapi/timetext"
	"github.com/environment-broker/environment-broker/process"
)

// RuntimeAccess calls an instance's runtime. Probe returns an error if the runtime does not respond. ApplyServiceManager writes the
// Service Manager credentials and is idempotent.
type RuntimeAccess interface {
	Probe(ctx context.Context, instance environment.Instance) error
	ApplyServiceManager(ctx context.Context, instance environment.Instance, credentials environment.ServiceManager) error
}

// ownInterval is the pause between two probes of a tenant's own cluster.
const ownInterval = 15 * time.Second

// getKubeconfig checks that the runtime responds to a client that uses its kubeconfig. The kubeconfig is not stored. For a
// tenant's own cluster the check fails after ownLimit, because the cluster already exists and waiting does not fix a wrong
// kubeconfig.
func getKubeconfig(access RuntimeAccess, ownLimit time.Duration) Step {
	return process.StepFunc("Get_Kubeconfig",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			err := access.Probe(ctx, operation.Data.Instance)
			if failure.Is(err, failure.Transient) && !managed(operation) && !ordered(operation) {
				ferr := failure.Of(err)
				limited := failure.Wrap(failure.Transient, err, "%s (the broker retries for at most %s)", ferr.Text, timetext.Duration(ownLimit)).
					WithReason(ferr.Reason, ferr.Component)

				return process.RetryOperation(operation, "", limited, ownInterval, ownLimit)
			}

			if err != nil {
				return operation, 0, err
			}

			if !integratesBTP(operation) {
				operation.Data.Instance.Request = afterwards(operation)
			}

			operation.Description = textReady

			return operation, 0, nil
		})
}

// afterwards returns the part of the request that later steps still need. The complete request is in the instance's row.
func afterwards(operation Operation) environment.Request {
	return environment.Request{Cluster: environment.Cluster{Kyma: operation.Data.Instance.Request.Cluster.Kyma}}
}
