package provisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/reconciling"
)

// createClusterConfiguration registers the runtime in the Reconciler, with the plan's Kyma configuration and the values that operators
// have set. The values can be secret, so they are never stored, and the step reads them itself.
func createClusterConfiguration(reconciler reconciling.Reconciler, instances Instances, kyma Kyma) Step {
	return process.StepFunc("Create_Cluster_Configuration",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			instance, err := instances.Find(ctx, operation.InstanceID) // earlier steps have removed the request from the data
			if err != nil {
				return operation, 0, err
			}

			if instance.Request.Cluster.Kyma, err = kyma.Complete(ctx, instance); err != nil {
				return operation, 0, err
			}

			if instance.Request.Cluster.Kyma, err = kyma.Overrides(ctx, instance); err != nil {
				return operation, 0, err
			}

			instance.OverrideServiceManager()
			instance.OverrideBusola()

			return reconciler.Apply(ctx, operation, instance)
		})
}
