package upgrading

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/process"
)

// Failed calls to AvS are repeated at these intervals for at most maintenanceWindow. After that, the upgrade continues even if the
// calls still fail.
const (
	beginInterval     = 30 * time.Second
	endInterval       = 10 * time.Second
	maintenanceWindow = 5 * time.Minute
)

// Maintenance puts an instance's AvS evaluations into maintenance and restores their states. Both calls are idempotent.
type Maintenance interface {
	Begin(ctx context.Context, by process.Record) error
	End(ctx context.Context, by process.Record) error
}

// beginMaintenance suppresses alerts about the instance before the upgrade changes anything.
func beginMaintenance(maintenance Maintenance) Step {
	return process.StepFunc("AVS_Set_Maintenance",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if err := maintenance.Begin(ctx, operation.Record); err != nil {
				return process.RetryOperationWithoutFail(operation, "", err, restclient.RetryAfter(err, beginInterval), maintenanceWindow)
			}

			return operation, 0, nil
		})
}

// endMaintenance restores the states of the evaluations. If the upgrade fails or the window passes, a background job restores the
// states. The removal of a runtime also removes its evaluations.
func endMaintenance(maintenance Maintenance) Step {
	return process.StepFunc("AVS_Restore_Status",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if err := maintenance.End(ctx, operation.Record); err != nil {
				return process.RetryOperationWithoutFail(operation, "", err, restclient.RetryAfter(err, endInterval), maintenanceWindow)
			}

			return operation, 0, nil
		})
}
