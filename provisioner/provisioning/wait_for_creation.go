package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// waitForCreation waits until Gardener has made the cluster, or has given up.
type waitForCreation struct {
	shoots      Shoots
	poll, limit time.Duration
}

// Name implements process.Step.
func (waitForCreation) Name() string { return "Wait_For_Cluster_Creation" }

// Run implements process.Step.
func (s waitForCreation) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	shoot, err := s.shoots.Get(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return op, 0, err
	}

	progress := gardener.ProgressOf(shoot)

	switch {
	case progress.Err != nil:
		return op, 0, progress.Err
	case progress.Done:
		op.WaitingFor = ""

		return op, 0, nil
	case progress.Stopped:
		if err := s.shoots.Retry(ctx, shoot); err != nil {
			return op, 0, err
		}
	}

	return process.Await(op, progress.Message, s.poll, s.limit)
}
