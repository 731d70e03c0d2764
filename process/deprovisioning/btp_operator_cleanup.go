package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// btpInterval is the pause between two attempts to remove the service instances of a runtime.
const btpInterval = 10 * time.Second

// Runtimes calls the runtimes of instances. RemoveServiceInstances removes the objects that the SAP BTP service operator manages,
// and returns how many are left. It is idempotent. If abandon is true, it does not wait for the service operator.
type Runtimes interface {
	RemoveServiceInstances(ctx context.Context, instance environment.Instance, abandon bool) (left int, err error)
}

// cleanBTP removes the service instances and bindings in the runtime before the runtime is removed. Otherwise they would stay in
// Service Manager, where they can cost money and block the deletion of the subaccount.
type cleanBTP struct{ runtimes Runtimes }

// Name implements process.Step.
func (cleanBTP) Name() string { return "BTPOperator_Cleanup" }

// Run implements process.Step. It waits for the SAP BTP service operator until cleanupWindow has passed, and then abandons the
// objects. If the subaccount was deleted, Run abandons them immediately: Service Manager has nothing left, and the service
// operator can no longer log in.
func (s cleanBTP) Run(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	instance := operation.Data.Instance

	left, err := s.runtimes.RemoveServiceInstances(ctx, instance, operation.Data.SubaccountDeleted)
	if failure.Is(err, failure.NotFound) || failure.Is(err, failure.Waiting) {
		return operation, 0, nil // the cluster is gone, or does not exist yet
	}

	if err == nil && left == 0 {
		return operation, 0, nil
	}

	if err == nil {
		err = failure.New(failure.Transient, "the runtime still has %d service instances or bindings", left).
			WithReason(failure.ReasonInternal, failure.ComponentRuntime)
	}

	given, wait, err := process.RetryOperationWithoutFail(operation, "", err, btpInterval, cleanupWindow)
	if err != nil || wait > 0 {
		return given, wait, err
	}

	if left, err := s.runtimes.RemoveServiceInstances(ctx, instance, true); err != nil || left > 0 {
		log.WithError(err).WithField("left", left).Warn("service instances of the runtime were abandoned; they may be left over in Service Manager")
	}

	return given, 0, nil
}

// hasServices returns the condition under which an operation of the given kind removes the service instances in the runtime: there is
// a cluster, and either the operation is a suspension or the subaccount was deleted. Other deletions keep the service instances,
// because they contain the user's data.
func hasServices(kind string) func(operation Operation) bool {
	return func(operation Operation) bool {
		instance := operation.Data.Instance

		return (kind == environment.KindSuspend || operation.Data.SubaccountDeleted) && (instance.RuntimeID != "" || instance.Request.Cluster.Own != nil)
	}
}
