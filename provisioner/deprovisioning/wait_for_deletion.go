package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/clusterwait"
	"github.com/environment-broker/environment-broker/provisioner/gardener"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// waitForDeletion waits until the cluster is gone. A deletion that Gardener gave up is tried again until the time is over, and a cluster
// that a frozen replica has ordered late is removed too: one that is left behind costs money.
type waitForDeletion struct {
	shoots      Shoots
	poll, limit time.Duration
}

// Name implements process.Step.
func (waitForDeletion) Name() string { return "Wait_For_Cluster_Deletion" }

// Run implements process.Step.
func (s waitForDeletion) Run(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	existing, err := s.shoots.Get(ctx, op.Data.Runtime.ShootName)
	if failure.Is(err, failure.NotFound) {
		op.WaitingFor = ""

		return op, 0, nil
	}

	if err != nil {
		return op, 0, err
	}

	if existing.Annotations[shoot.AnnotationRuntimeID] != op.Data.Runtime.ID {
		return op, 0, nil // the name was given to another runtime's cluster: ours is gone
	}

	if existing.DeletionTimestamp == nil {
		log.WithField("shoot", existing.Name).Warn("the cluster was ordered late and is removed again")

		if err := s.shoots.Delete(ctx, existing.Name, op.Data.Runtime.ID); err != nil {
			return op, 0, err
		}
	}

	progress := gardener.ProgressOf(existing)
	if (progress.Stopped || progress.Err != nil) && progress.Rested(op.Now()) {
		if err := s.shoots.Retry(ctx, existing); err != nil {
			return op, 0, err
		}
	}

	if progress.Done {
		progress.Message = "Gardener has not begun to remove the cluster yet"
	}

	return clusterwait.Await(op, progress, s.poll, s.limit)
}
