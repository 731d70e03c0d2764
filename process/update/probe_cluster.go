package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
)

// probeCluster proves that the tenant's own cluster answers to the kubeconfig that the update brings.
type probeCluster struct {
	access RuntimeAccess
}

// Name implements process.Step.
func (probeCluster) Name() string { return "Check_Own_Cluster" }

// Run implements process.Step.
func (s probeCluster) Run(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
	changed, err := operation.Data.Change.Apply(operation.Data.Instance)
	if err != nil {
		return operation, 0, err
	}

	return operation, 0, s.access.Probe(ctx, changed)
}
