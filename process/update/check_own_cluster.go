package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// ownInterval is the pause between two probes of a tenant's own cluster.
const ownInterval = 15 * time.Second

// checkOwnCluster checks that the tenant's own cluster responds to the kubeconfig in the update. The check fails after limit, because
// waiting does not fix a wrong kubeconfig, and a corrected one is not accepted before the update has failed.
func checkOwnCluster(access RuntimeAccess, limit time.Duration) Step {
	return process.StepFunc("Check_Own_Cluster",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			updated := operation.Data.Instance
			updated.Request.Cluster = operation.Data.Update.Cluster

			err := access.Probe(ctx, updated)
			if failure.Is(err, failure.Transient) {
				return process.RetryOperation(operation, "", err, ownInterval, limit)
			}

			return operation, 0, err
		})
}
