package clusterupdate

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/provisioner/operation"
)

// recordConfiguration records what the cluster is now. Until then its runtime is told as it was.
type recordConfiguration struct {
	runtimes Runtimes
}

// Name implements process.Step.
func (recordConfiguration) Name() string { return "Record_Configuration" }

// Run implements process.Step.
func (s recordConfiguration) Run(ctx context.Context, op operation.Operation, _ logrus.FieldLogger,
) (operation.Operation, time.Duration, error) {
	runtime := op.Data.Runtime

	if err := s.runtimes.Configured(ctx, runtime.ID, runtime.Configuration, op.Position); err != nil {
		return op, 0, failure.Wrap(failure.Transient, err, "the new configuration of the runtime could not be recorded").
			WithReason(failure.ReasonInternal, failure.ComponentProvisionerStorage)
	}

	return op, 0, nil
}
