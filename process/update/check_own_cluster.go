package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// checkOwnCluster checks that the tenant's own cluster answers to the kubeconfig that it has after the update.
func checkOwnCluster(access RuntimeAccess) Step {
	return process.StepFunc("Check_Own_Cluster",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			updated := operation.Data.Instance
			updated.Request.Cluster = operation.Data.Update.Cluster

			return operation, 0, access.Probe(ctx, updated)
		})
}
