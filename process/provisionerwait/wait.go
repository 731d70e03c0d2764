// Package provisionerwait waits for operations of the Provisioner on behalf of the broker's steps. A wait never blocks: the step asks
// once and runs again later, or as soon as the Provisioner's change feed reports the operation.
package provisionerwait

import (
	"cmp"
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
)

// Operations reads the status of an operation of the Provisioner. Its errors are of package failure.
type Operations interface {
	OperationStatus(ctx context.Context, tenant, operationID string) (provisionerclient.Operation, error)
}

// Pace returns the interval to the next poll of an operation that has been polled for the elapsed time. With a change feed, polling
// is only the fallback.
type Pace func(elapsed time.Duration) time.Duration

// Waiter waits for operations of the Provisioner.
type Waiter struct {
	Operations Operations
	Pace       Pace
	// Delay returns how long an operation must wait before it may poll, see PollLimiter; nil for no limit.
	Delay func(operationID string) time.Duration
	// Limit bounds the wait. Then the operation fails.
	Limit time.Duration
}

// While the Provisioner is busy, an operation retries after a tenth of the time it has waited so far, within these bounds.
const (
	minBusyInterval = time.Second
	maxBusyInterval = 20 * time.Second
	busyShare       = 10
)

// Event returns the key of Record.WaitingFor for an operation of the Provisioner.
func Event(provisionerOperationID string) string {
	return "provisioner operation " + provisionerOperationID
}

// AwaitIdle retries later because the Provisioner runs another operation of the runtime. No feed reports the end of that one, because
// it belongs to no operation of the broker.
func (w Waiter) AwaitIdle(operation process.Operation[environment.Data]) (process.Operation[environment.Data], time.Duration, error) {
	return process.Await(operation, "the Provisioner is busy with another operation of the runtime",
		min(max(operation.Elapsed()/busyShare, minBusyInterval), maxBusyInterval), w.Limit)
}

// Await is done when the Provisioner's operation has succeeded, runs again while that is unfinished, and fails with its error. It has
// the signature of a step.
func (w Waiter) Await(ctx context.Context, operation process.Operation[environment.Data], _ logrus.FieldLogger,
) (process.Operation[environment.Data], time.Duration, error) {
	if w.Delay != nil {
		if delay := w.Delay(operation.ID); delay > 0 {
			return process.Await(operation, "many operations poll the Provisioner, this one waits for its turn", delay, w.Limit)
		}
	}

	status, err := w.Operations.OperationStatus(ctx, operation.Data.Instance.RuntimeTenant(), operation.Data.ProvisionerOperationID)
	if err != nil {
		return operation, 0, err
	}

	switch status.State {
	case provisionerclient.StateSucceeded:
		operation.WaitingFor = ""

		return operation, 0, nil
	case provisionerclient.StateFailed:
		return operation, 0, failure.New(failure.Permanent, "the Provisioner failed: %s",
			cmp.Or(status.LastError.Message, status.Message, "no reason given")).
			WithReason(status.LastError.Reason, cmp.Or(status.LastError.Component, failure.ComponentProvisioner))
	default:
		why := "the Provisioner is working on it: " + cmp.Or(status.LastError.Message, status.Message, string(status.State))

		return process.Await(operation, why, w.Pace(operation.Elapsed()), w.Limit)
	}
}
