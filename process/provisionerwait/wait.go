// Package provisionerwait waits for an operation of the Provisioner on behalf of a step.
package provisionerwait

import (
	"cmp"
	"context"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/provisionerclient"
	"github.com/environment-broker/environment-broker/internal/provisionerclient/wire"
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
	// MayAsk says whether the Provisioner may be asked now; nil for always.
	MayAsk func() bool
	// Limit bounds the wait; then the step's operation fails.
	Limit time.Duration
}

// busy is how long an operation stands back at least when too many ask the Provisioner.
const busy = time.Second

// Event is what an operation waits for that waits for this operation of the Provisioner.
func Event(provisionerOperationID string) string {
	return "provisioner operation " + provisionerOperationID
}

// Await returns the operation done when the Provisioner's is, lets it come back while that runs, and fails it with the
// Provisioner's error.
func (w Waiter) Await(ctx context.Context, operation process.Operation[environment.Data],
) (process.Operation[environment.Data], time.Duration, error) {
	if w.MayAsk != nil && !w.MayAsk() {
		return process.Await(operation, "many operations ask the Provisioner, this one waits for its turn",
			max(busy, w.Pace(operation.Elapsed())), w.Limit)
	}

	asked := operation.Data.ProvisionerOperationID

	status, err := w.Operations.OperationStatus(ctx, operation.Data.Instance.RuntimeTenant(), asked)
	if err != nil {
		return operation, 0, err
	}

	switch status.State {
	case wire.OperationStateSucceeded:
		operation.WaitingFor = ""

		return operation, 0, nil
	case wire.OperationStateFailed:
		return operation, 0, failure.New(failure.Permanent, "the Provisioner failed: %s",
			cmp.Or(status.LastError.Message, status.Message, "it does not say why")).
			Because(status.LastError.Reason, cmp.Or(status.LastError.Component, failure.ComponentProvisioner))
	default:
		why := "the Provisioner works on it: " + cmp.Or(status.LastError.Message, status.Message, string(status.State))

		return process.Await(operation, why, w.Pace(operation.Elapsed()), w.Limit)
	}
}
