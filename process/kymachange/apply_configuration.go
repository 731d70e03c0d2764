package kymachange

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/reconciling"
)

// ApplyConfiguration returns the step that sends the changed configuration of Kyma to the Reconciler. The step first saves the
// operation with the chosen Kyma version. A retry of the step therefore sends the same version, even if the default has changed
// since, and the operation shows the version that was sent.
func ApplyConfiguration(name string, reconciler reconciling.Reconciler) Step {
	return process.StepFunc(name,
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			changed, err := operation.Data.Changed()
			if err != nil {
				return operation, 0, err
			}

			if err := operation.Save(ctx); err != nil {
				return operation, 0, failure.Wrap(failure.Transient, err, "could not store the Kyma change before sending it")
			}

			return reconciler.Apply(ctx, operation, changed)
		})
}

// ConfigurationNotes describes the step that ApplyConfiguration returns.
func ConfigurationNotes() process.Notes {
	return process.Notes{Does: "Sends the changed configuration of Kyma to the Reconciler.", System: reconciling.System}
}
