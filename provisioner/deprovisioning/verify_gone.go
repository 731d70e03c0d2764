package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/provisioner/operation"
	"github.com/environment-broker/environment-broker/provisioner/shoot"
)

// verifyGone looks once more when the end of the runtime is recorded: a replica that was frozen while it ordered the cluster may have
// ordered it late. From then on every late cluster is found by its runtime's row. With the cluster goes what stood beside it.
type verifyGone struct {
	shoots      Shoots
	poll, limit time.Duration
}

// Name implements process.Step.
func (verifyGone) Name() string { return "Verify_Gone" }

// Run implements process.Step.
func (s verifyGone) Run(ctx context.Context, op operation.Operation, log logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime

	existing, err := s.shoots.Get(ctx, runtime.ShootName)
	if failure.Is(err, failure.NotFound) || err == nil && existing.Annotations[shoot.AnnotationRuntimeID] != runtime.ID {
		return op, 0, s.shoots.Tidy(ctx, runtime.ID, nil)
	}

	if err != nil {
		return op, 0, err
	}

	log.WithField("shoot", runtime.ShootName).Warn("the cluster was ordered late and is removed again")

	if err := s.shoots.Delete(ctx, runtime.ShootName, runtime.ID); err != nil {
		return op, 0, err
	}

	return process.Await(op, "a cluster that was ordered late is removed again", s.poll, s.limit)
}
