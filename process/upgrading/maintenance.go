package upgrading

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/process"
)

// The calls of AvS are repeated at these intervals for at most maintenanceWindow. After that the upgrade continues without them.
const (
	beginInterval     = 30 * time.Second
	endInterval       = 10 * time.Second
	maintenanceWindow = 5 * time.Minute
)

// Maintenance sets the evaluations of an instance in AvS into maintenance and restores their states. Both calls can be repeated.
type Maintenance interface {
	Begin(ctx context.Context, by process.Record) error
	End(ctx context.Context, by process.Record) error
}

// Monitored is the condition of the steps of AvS. It is off without a Maintenance.
func Monitored(maintenance Maintenance) process.Condition[environment.Data] {
	condition := NoDryRun()
	condition.Text += ", APP_AVS_API_ENDPOINT is set"
	condition.Off = maintenance == nil

	return condition
}

// MaintenanceNotes describe the steps of AvS.
func MaintenanceNotes() process.Notes {
	return process.Notes{System: "AvS", Limit: maintenanceWindow, Optional: true}
}

// BeginMaintenance returns the step that suppresses alerts about the instance before the upgrade changes anything.
func BeginMaintenance(maintenance Maintenance) Step {
	return process.StepFunc("AVS_Set_Maintenance",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if err := maintenance.Begin(ctx, operation.Record); err != nil {
				return process.RetryOperationWithoutFail(operation, "", err, beginInterval, maintenanceWindow)
			}

			return operation, 0, nil
		})
}

// EndMaintenance returns the step that restores the states of the evaluations. If the runtime is being removed, the removal also removes
// the evaluations. After an upgrade that ends otherwise, and after the window, a background job restores the states.
func EndMaintenance(maintenance Maintenance) Step {
	return process.StepFunc("AVS_Restore_Status",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if operation.Data.Upgrade.Preempted {
				return process.Noted(operation, textPreempted), 0, nil
			}

			if err := maintenance.End(ctx, operation.Record); err != nil {
				return process.RetryOperationWithoutFail(operation, "", err, endInterval, maintenanceWindow)
			}

			return operation, 0, nil
		})
}
