package upgrading

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/process"
)

// If the messages cannot be stored, the step retries at this interval for at most notificationWindow. The upgrade then continues
// without them.
const (
	notificationInterval = 10 * time.Second
	notificationWindow   = 5 * time.Minute
)

// Notifications records messages for customers. Announce is idempotent. If it has succeeded, the end of the operation also
// records a message about the end of the maintenance.
type Notifications interface {
	Announce(ctx context.Context, by process.Record) error
}

// sendNotification returns the step that informs customers of the beginning of the maintenance. It only records the messages, so it does
// not wait for the notification service.
func sendNotification(notifications Notifications) Step {
	return process.StepFunc("Send_Notification",
		func(ctx context.Context, operation Operation, _ logrus.FieldLogger) (Operation, time.Duration, error) {
			if err := notifications.Announce(ctx, operation.Record); err != nil {
				return process.RetryOperationWithoutFail(operation, "", err, notificationInterval, notificationWindow)
			}

			return operation, 0, nil
		})
}
