package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// cleanUp has services removed that the cluster got from outside: without the cluster nobody would ask for that any more.
type cleanUp struct {
	shoots      Shoots
	clusters    Clusters
	brokers     string
	poll, limit time.Duration
}

// Name implements process.Step.
func (cleanUp) Name() string { return "Clean_Up_Cluster" }

// Run implements process.Step.
func (s cleanUp) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	there, err := inhabited(ctx, s.shoots, op)
	if err != nil || !there {
		return op, 0, err
	}

	left, err := s.clusters.RemoveServices(ctx, op.Data.Runtime.ShootName, s.brokers)
	if err == nil && left == "" {
		return op, 0, nil
	}

	why := "the services of the cluster are being removed"
	if left != "" {
		why += ": there are still " + left
	}

	return patiently(ctx, op, why, err, s.poll, s.limit)
}
