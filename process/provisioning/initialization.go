package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// initialization chooses the version and the installer of Kyma, and reads which components the plan installs. If the runtime
// cannot be ordered, the operation fails before anything is recorded or sent. The choice never changes within an operation,
// because an order that is repeated under its idempotency key must stay the same. A retry chooses again, so that it uses a
// corrected configuration.
func initialization(kyma Kyma, installer environment.KymaInstaller) Step {
	return process.StepFunc("Provision_Initialization",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if wanted := operation.Data.Instance.Request.Cluster.Kyma; wanted != nil {
				unchosen := *wanted
				if operation.Data.KymaChosenBy != operation.ID && !unchosen.InstalledBy(environment.InstallerLifecycleManager) {
					unchosen.Installer = installer
				}

				if operation.Data.KymaChosenBy != operation.ID && !unchosen.Ordered {
					unchosen.Version = ""
				}

				operation.Data.Instance.Request.Cluster.Kyma = &unchosen

				completed, err := kyma.Complete(ctx, operation.Data.Instance)
				if err != nil {
					return operation, 0, err
				}

				if completed.InstalledBy(environment.InstallerReconciler) {
					completed.Installation = nil // a later stage completes it
				}

				operation.Data.Instance.Request.Cluster.Kyma, operation.Data.KymaChosenBy = completed, operation.ID
			}

			return operation, 0, provisionerclient.CheckOrder(operation.Data.Instance)
		})
}
