package processes

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// recordConfiguration copies the changed order to the runtime's row, which the API shows to clients. The write takes effect only
// if no later operation has recorded an order, so a late write by a frozen replica does no harm.
func (o Options) recordConfiguration(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	if err := o.Runtimes.Configured(ctx, op.Data.Runtime, op.Position); err != nil {
		return op, 0, failure.Wrap(failure.Transient, err, "the new configuration of the runtime could not be recorded").
			WithReason(failure.ReasonInternal, failure.ComponentProvisionerStorage)
	}

	return op, 0, nil
}
