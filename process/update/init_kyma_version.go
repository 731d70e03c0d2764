package update

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/kymachange"
)

// initKymaVersion completes the changed Kyma configuration: it keeps the runtime's version and installer, and adds the plan's
// installation.
func initKymaVersion(kyma kymachange.Kyma) Step {
	return process.StepFunc("Update_Init_Kyma_Version",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			changed, err := operation.Data.Changed()
			if err != nil {
				return operation, 0, err
			}

			wanted := *changed.Request.Cluster.Kyma
			present := operation.Data.Instance.Request.Cluster.Kyma
			wanted.Version, wanted.Installer = present.Version, present.Installer
			changed.Request.Cluster.Kyma = &wanted

			completed, err := kyma.Complete(ctx, changed)
			if err != nil {
				return operation, 0, err
			}

			change := *operation.Data.Update
			change.Cluster.Kyma, operation.Data.Update = completed, &change

			return operation, 0, nil
		})
}
