package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// markDeleted records that the cluster is gone, which frees its name.
type markDeleted struct {
	runtimes Runtimes
	now      func() time.Time
}

// Name implements process.Step.
func (markDeleted) Name() string { return "Mark_Deleted" }

// Run implements process.Step.
func (s markDeleted) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	if err := s.runtimes.MarkDeleted(ctx, op.Data.Runtime.ID, s.now()); err != nil {
		return op, 0, failure.Wrap(failure.Transient, err, "the end of the runtime could not be recorded").
			WithReason(failure.ReasonInternal, failure.ComponentProvisionerStorage)
	}

	return op, 0, nil
}
