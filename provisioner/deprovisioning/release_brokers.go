package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// releaseBrokers takes from the cluster's service brokers what would keep them there: once Kyma is gone nobody removes it any more, and
// Gardener would wait for them.
type releaseBrokers struct {
	shoots      Shoots
	clusters    Clusters
	poll, limit time.Duration
}

// Name implements process.Step.
func (releaseBrokers) Name() string { return "Release_Service_Brokers" }

// Run implements process.Step.
func (s releaseBrokers) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	there, err := inhabited(ctx, s.shoots, op)
	if err != nil || !there {
		return op, 0, err
	}

	if err := s.clusters.ReleaseBrokers(ctx, op.Data.Runtime.ShootName); err != nil {
		return patiently(ctx, op, "the service brokers of the cluster could not be released", err, s.poll, s.limit)
	}

	return op, 0, nil
}
