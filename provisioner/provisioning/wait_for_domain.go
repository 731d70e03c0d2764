package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/provisioner/clusterwait"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// waitForDomain waits until Gardener has given the cluster its domain: from then on it has a place on a seed.
type waitForDomain struct {
	shoots      Shoots
	poll, limit time.Duration
}

// Name implements process.Step.
func (waitForDomain) Name() string { return "Wait_For_Cluster_Domain" }

// Run implements process.Step.
func (s waitForDomain) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	shoot, err := s.shoots.Get(ctx, op.Data.Runtime.ShootName)
	if err != nil {
		return op, 0, err
	}

	if shoot.Spec.DNS == nil || shoot.Spec.DNS.Domain == nil || *shoot.Spec.DNS.Domain == "" {
		progress := gardener.ProgressOf(shoot)
		progress.Message = "the cluster has no domain yet: " + progress.Message

		return clusterwait.Await(op, progress, s.poll, s.limit)
	}

	return op, 0, nil
}
