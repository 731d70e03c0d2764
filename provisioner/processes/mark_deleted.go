package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// markDeleted records that the cluster is gone. From then on, a new runtime can reuse the name of the cluster. The recorded time
// is the start of the attempt; a repeated run does not change it.
func (o Options) markDeleted(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	if err := o.Runtimes.MarkDeleted(ctx, op.Data.Runtime.ID, op.Now()); err != nil {
		return op, 0, failure.Wrap(failure.Transient, err, "the deletion of the runtime could not be recorded").
			WithReason(failure.ReasonInternal, failure.ComponentProvisionerStorage)
	}

	return op, 0, nil
}
