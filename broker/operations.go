package broker

import (
	"cmp"
	"context"
	"errors"

	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// maxAttempts limits the decisions on one request. Another decision is needed each time a concurrent request
// for the same instance was committed first.
const maxAttempts = 3

// errLostRace reports that a concurrent request for the same instance was committed first.
var errLostRace = errors.New("a concurrent request for the instance was faster")

// retryLostRace repeats the attempt while a concurrent request wins: the attempt fails with errLostRace or
// violates a unique index. Each attempt sees the rows of the winner, so the second one usually returns the
// winner's operation. After maxAttempts the platform gets a ConcurrencyError.
func retryLostRace[Result any](attempt func() (Result, error)) (Result, error) {
	for range maxAttempts {
		result, err := attempt()
		if !errors.Is(err, errLostRace) && !storage.IsDuplicate(err) {
			return result, err
		}
	}

	var none Result

	return none, concurrent()
}

// decide runs a decision in one transaction, and again in another one if it loses a race. A decision therefore
// must not have effects outside of its transaction.
func decide[Result any](ctx context.Context, a *api, decision func(tx storage.Tx) (Result, error)) (Result, error) {
	return retryLostRace(func() (result Result, err error) {
		err = a.DB.InTx(ctx, func(tx storage.Tx) error {
			result, err = decision(tx)

			return err
		})

		return result, err
	})
}

// outcome is the operation that answers a request.
type outcome struct {
	// operation is the ID of the operation, empty if the request needs none.
	operation string
	// accepted reports that the request started the operation.
	accepted bool
}

// started logs the operation of a request, and wakes the engine if the operation is new. Endpoints call started
// after the commit, because the engine would not find the operation earlier. Without the wake, the operation
// starts at the engine's next look at the database.
func (a *api) started(ctx context.Context, outcome outcome) {
	if outcome.operation != "" {
		httpserver.Note(ctx, logging.OperationID, outcome.operation)
	}

	if outcome.accepted {
		a.Wake()
	}
}

// lifecycleKinds are the kinds of operations that create and delete an instance.
func lifecycleKinds() []string {
	return []string{environment.KindProvision, environment.KindDeprovision}
}

// latest returns the newest operation of the kinds, and false if there is none. The instance ID may be the key
// of a binding.
func (a *api) latest(ctx context.Context, tx storage.Tx, instanceID string, kinds ...string) (process.Record, bool, error) {
	record, err := a.Operations.Latest(ctx, tx, instanceID, kinds...)
	if errors.Is(err, storage.ErrNotFound) {
		return process.Record{}, false, nil
	}

	return record, err == nil, err
}

// beingDeleted reports whether the newest operation is an unfinished deletion. The row of the instance may
// already be gone.
func beingDeleted(newest process.Record) bool {
	return newest.Kind == environment.KindDeprovision && !newest.State.Terminal()
}

// reusable reports whether the operation is unfinished and not being canceled, so that a repeated request need
// not start another one.
func reusable(operation process.Record) bool {
	return !operation.State.Terminal() && operation.State != process.Canceling
}

// newOperation returns a new operation on an instance, with the requester, the trace and the audit entry. The
// entry has the fields that change from before to after; before is nil for a creation, after for a deletion.
// The update may be nil.
func (a *api) newOperation(ctx context.Context, kind string, before, after *environment.Instance, update *environment.Update,
) (process.New, error) {
	operation, err := environment.NewOperation(kind, *cmp.Or(before, after), update, a.Clock.Now())
	if err != nil {
		return operation, err
	}

	entry := auditlog.Entry{By: audit.ActorOf(ctx)}

	if before != nil {
		entry.Before = before.Shown()
	}

	if after != nil {
		entry.After = after.Shown()
	}

	if before != nil && after != nil {
		entry.Before, entry.After = auditlog.Difference(entry.Before, entry.After)
	}

	operation.OrderedBy, operation.Trace = entry.By.Name(), tracing.Carry(ctx)
	operation.Audit, err = entry.Encode()

	return operation, err
}
