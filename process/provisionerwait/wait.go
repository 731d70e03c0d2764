// Package provisionerwait waits for an operation of the Provisioner on behalf of a step.
package provisionerwait

import (
	"cmp"
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/process"
)

// Operations tells how an operation of the Provisioner stands. Its errors are of package failure.
type Operations interface {
	OperationStatus(ctx context.Context, tenant, operationID string) (provisionerclient.Operation, error)
}

// Pace is how long to wait before the Provisioner is asked again about an operation that it was first asked about so long ago.
// Where the Provisioner tells of changes, this is only the fallback.
type Pace func(elapsed time.Duration) time.Duration

// Waiter waits for operations of the Provisioner.
type Waiter struct {
	Operations Operations
	Pace       Pace
	// Turn is how long an operation has to wait until it may ask the Provisioner, nothing when it may now; nil for always.
	Turn func(operationID string) time.Duration
	// Limit bounds the wait; then the step's operation fails.
	Limit time.Duration
}

// An operation stands back from a busy Provisioner for a share of the time that it has done so already, within these bounds.
const (
	shortestBusy = time.Second
	longestBusy  = 20 * time.Second
	busyShare    = 10
)

// Event is what an operation waits for that waits for this operation of the Provisioner.
func Event(provisionerOperationID string) string {
	return "provisioner operation " + provisionerOperationID
}

// StandBack lets an operation come back whose runtime another operation of the Provisioner is at work on. No feed tells it when that has
// ended: it waits for an operation of its own only.
func (w Waiter) StandBack(operation process.Operation[environment.Data]) (process.Operation[environment.Data], time.Duration, error) {
	return process.Await(operation, "the Provisioner is busy with another operation of the runtime",
		min(max(operation.Elapsed()/busyShare, shortestBusy), longestBusy), w.Limit)
}

// Await returns the operation done when the Provisioner's is, lets it come back while that runs, and fails it with the
// Provisioner's error.
func (w Waiter) Await(ctx context.Context, operation process.Operation[environment.Data],
) (process.Operation[environment.Data], time.Duration, error) {
	if w.Turn != nil {
		if wait := w.Turn(operation.ID); wait > 0 {
			return process.Await(operation, "many operations ask the Provisioner, this one waits for its turn", wait, w.Limit)
		}
	}

	asked := operation.Data.ProvisionerOperationID

	status, err := w.Operations.OperationStatus(ctx, operation.Data.Instance.RuntimeTenant(), asked)
	if err != nil {
		return operation, 0, err
	}

	switch status.State {
	case provisionerclient.StateSucceeded:
		operation.WaitingFor = ""

		return operation, 0, nil
	case provisionerclient.StateFailed:
		return operation, 0, failure.New(failure.Permanent, "the Provisioner failed: %s",
			cmp.Or(status.LastError.Message, status.Message, "it does not say why")).
			WithReason(status.LastError.Reason, cmp.Or(status.LastError.Component, failure.ComponentProvisioner))
	default:
		why := "the Provisioner works on it: " + cmp.Or(status.LastError.Message, status.Message, string(status.State))

		return process.Await(operation, why, w.Pace(operation.Elapsed()), w.Limit)
	}
}
