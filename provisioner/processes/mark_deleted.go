package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// markDeleted records that the cluster is gone, with the start of the attempt as the time. From then on a new runtime may reuse
// the name of the cluster. A repeated run keeps the time of the first one.
func (o Options) markDeleted(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	if err := o.Runtimes.MarkDeleted(ctx, op.Data.Runtime.ID, op.Now()); err != nil {
		return op, 0, failure.Wrap(failure.Transient, err, "the deletion of the runtime could not be recorded").
			WithReason(failure.ReasonInternal, failure.ComponentProvisionerStorage)
	}

	return op, 0, nil
}
