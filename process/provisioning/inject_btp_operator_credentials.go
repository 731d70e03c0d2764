package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// injectCredentials writes the tenant's Service Manager credentials to the runtime, where the SAP BTP service operator uses them.
func injectCredentials(access RuntimeAccess) Step {
	return process.StepFunc("Inject_BTP_Operator_Credentials",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			instance := operation.Data.Instance
			if err := access.ApplyServiceManager(ctx, instance, *instance.Request.Cluster.ServiceManager); err != nil {
				return operation, 0, err
			}

			operation.Data.Instance.Request = afterwards(operation)

			return operation, 0, nil
		})
}
