package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
)

// checkOwnCluster looks whether a cluster that the tenant brings answers to the kubeconfig that it has afterwards.
type checkOwnCluster struct {
	access RuntimeAccess
}

// Name implements process.Step.
func (checkOwnCluster) Name() string { return "Check_Own_Cluster" }

// Run implements process.Step.
func (s checkOwnCluster) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	afterwards := operation.Data.Instance
	afterwards.Request.Cluster = operation.Data.Update.Cluster

	return operation, 0, s.access.Probe(ctx, afterwards)
}
