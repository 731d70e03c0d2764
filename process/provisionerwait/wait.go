// Package provisionerwait waits for operations of the Provisioner on behalf of the broker's steps. A wait does not hold a worker:
// the step polls once and runs again later, or as soon as the Provisioner's change feed reports the operation. The key that Event
// returns identifies the operation to wake. Polling is the fallback when the feed lags or the Provisioner has none. Without a
// feed, a Poller combines the polls of a tenant's operations into few requests.
package provisionerwait

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/clients/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// Operations reads the status of a Provisioner operation.
type Operations interface {
	OperationStatus(ctx context.Context, tenant, operationID string) (provisionerclient.Operation, error)
}

// Pace returns the interval until the next poll of an operation that has been polled for the given time. With a change feed,
// polling is only the fallback. Without one, the Poller may extend the interval.
type Pace func(elapsed time.Duration) time.Duration

// Waiter waits for operations of the Provisioner. All steps of the broker share one Waiter.
type Waiter struct {
	Operations Operations
	// Poller, if set, polls in place of Operations while FeedAlive reports false.
	Poller *Poller
	// FeedAlive reports whether the change feed works. While it works, polls are rare and each sends a separate request.
	// FeedAlive is required if Poller is set.
	FeedAlive func() bool
	// Pace determines when an operation polls again. It is required. A replica with a change feed needs a slower pace.
	Pace Pace
	// Limit bounds the wait, counted from the first attempt of the step. After that, the operation fails.
	Limit time.Duration
}

// While the Provisioner is busy, an operation retries after a tenth of the time that it has waited so far, within these bounds.
const (
	minBusyInterval = time.Second
	maxBusyInterval = 20 * time.Second
	busyShare       = 10
)

// Event returns the value of Record.WaitingFor for a Provisioner operation.
func Event(provisionerOperationID string) string {
	return "provisioner operation " + provisionerOperationID
}

// AwaitIdle runs the step again later, because the Provisioner is busy with another operation of the runtime. The broker does not
// know the ID of that operation, so it cannot wait for its event and tries again instead.
func (w Waiter) AwaitIdle(operation process.Operation[environment.Data]) (process.Operation[environment.Data], time.Duration, error) {
	return process.Await(operation, "the Provisioner is busy with another operation of the runtime",
		min(max(operation.Elapsed()/busyShare, minBusyInterval), maxBusyInterval), w.Limit)
}

// Ordered ends a step that has sent an order to the Provisioner, with the result of the request. The next Await waits for the order.
// While the Provisioner is busy with another operation of the runtime, the step runs again later.
func (w Waiter) Ordered(operation process.Operation[environment.Data], ordered provisionerclient.Operation, err error,
) (process.Operation[environment.Data], time.Duration, error) {
	switch {
	case failure.Is(err, failure.Waiting):
		return w.AwaitIdle(operation)
	case err != nil:
		return operation, 0, err
	}

	operation.Data.ProvisionerOperationID, operation.WaitingFor = ordered.ID, Event(ordered.ID)

	return operation, 0, nil
}

// Await polls the operation that Data.ProvisionerOperationID names. The step is done when that operation has succeeded, runs
// again while it is unfinished, and fails with its error. Await is a process.RunFunc.
func (w Waiter) Await(ctx context.Context, operation process.Operation[environment.Data], _ logrus.FieldLogger,
) (process.Operation[environment.Data], time.Duration, error) {
	poller := w.poller()

	status, delay, err := w.poll(ctx, poller, operation)

	switch {
	case err != nil:
		return operation, 0, err
	case delay > 0:
		return process.Await(operation, "many operations are polling the Provisioner; this one is waiting for its turn", delay, w.Limit)
	}

	switch status.State {
	case provisionerclient.StateSucceeded:
		operation.WaitingFor = ""

		return operation, 0, nil
	case provisionerclient.StateFailed:
		return operation, 0, failure.Reported(failure.Permanent, "", cmp.Or(status.LastError.Component, failure.ComponentProvisioner),
			status.LastError.Reason, cmp.Or(status.LastError.Message, status.Message))
	default:
		why := working + ": " + cmp.Or(status.Message, string(status.State))
		if status.LastError.Message != "" {
			why = fmt.Sprintf("%s, %s: %s (%s)", working, delayed, status.LastError.Message, status.LastError.Reason)
		}

		interval := w.Pace(operation.Elapsed())
		if poller != nil {
			interval = max(interval, poller.Interval())
			poller.Expect(operation.Data.Instance.RuntimeTenant(), operation.Data.ProvisionerOperationID, interval)
		}

		return process.Await(operation, why, interval, w.Limit)
	}
}

// poller returns the Poller if the operation has to use it, or nil.
func (w Waiter) poller() *Poller {
	if w.Poller == nil || w.FeedAlive() {
		return nil
	}

	return w.Poller
}

// poll returns the status of the Provisioner's operation, or how long the operation must wait before it may poll.
func (w Waiter) poll(ctx context.Context, poller *Poller, operation process.Operation[environment.Data],
) (provisionerclient.Operation, time.Duration, error) {
	tenant, id := operation.Data.Instance.RuntimeTenant(), operation.Data.ProvisionerOperationID
	if poller != nil {
		return poller.Poll(ctx, tenant, id)
	}

	status, err := w.Operations.OperationStatus(ctx, tenant, id)

	return status, 0, err
}
