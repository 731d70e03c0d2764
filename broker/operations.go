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

// maxAttempts is the maximum number of attempts to decide on a request. An attempt fails if a concurrent request
// for the same instance is committed first.
const maxAttempts = 3

// errLostRace is returned if a concurrent request for the same instance was committed first.
var errLostRace = errors.New("another request changed the instance first")

// retryLostRace repeats the attempt if it loses a race against a concurrent request: if it returns errLostRace, violates a unique
// index, or is aborted because of a deadlock. The next attempt reads the rows that the other request stored, and usually returns
// its operation. After maxAttempts, the platform gets a ConcurrencyError.
func retryLostRace[Result any](attempt func() (Result, error)) (Result, error) {
	for range maxAttempts {
		result, err := attempt()
		if !errors.Is(err, errLostRace) && !storage.IsDuplicate(err) && !storage.IsDeadlock(err) {
			return result, err
		}
	}

	var none Result

	return none, concurrent()
}

// decide runs a decision in a transaction. If the decision loses a race, decide runs it again in a new transaction.
// The decision therefore must not have side effects outside of its transaction.
func decide[Result any](ctx context.Context, a *api, decision func(tx storage.Tx) (Result, error)) (Result, error) {
	return retryLostRace(func() (Result, error) { return inTx(ctx, a, decision) })
}

// inTx runs a decision once, in a transaction.
func inTx[Result any](ctx context.Context, a *api, decision func(tx storage.Tx) (Result, error)) (result Result, err error) {
	err = a.DB.InTx(ctx, func(tx storage.Tx) error {
		result, err = decision(tx)

		return err
	})

	return result, err
}

// snapshot reads several rows in one transaction, as they were at one point in time. Separate reads could mix rows from before
// and after a concurrent change, and the response would describe a state that never existed.
func snapshot[Result any](ctx context.Context, a *api, read func(tx storage.Tx) (Result, error)) (result Result, err error) {
	err = a.DB.InSnapshot(ctx, func(tx storage.Tx) error {
		result, err = read(tx)

		return err
	})

	return result, err
}

// outcome is the decision on a request.
type outcome struct {
	// operation is the ID of the operation in the response, or empty if the request needs no operation.
	operation string
	// accepted reports whether this request created the operation.
	accepted bool
}

// started logs the ID of the operation, and wakes the engine if the operation is new. Endpoints call started after
// the commit, because the engine cannot see an uncommitted operation. If the wake-up is lost, the engine finds the
// operation at its next poll.
func (a *api) started(ctx context.Context, outcome outcome) {
	if outcome.operation != "" {
		httpserver.Note(ctx, logging.OperationID, outcome.operation)
	}

	if outcome.accepted {
		a.Wake()
	}
}

// lifecycleKinds returns the kinds of operations that create and delete an instance.
func lifecycleKinds() []string {
	return []string{environment.KindProvision, environment.KindDeprovision}
}

// latest returns the newest operation of the given kinds, and false if there is none. The key is an instance ID or a
// BindingKey.
func (a *api) latest(ctx context.Context, tx storage.Tx, key string, kinds ...string) (process.Record, bool, error) {
	record, err := a.Operations.Latest(ctx, tx, key, kinds...)
	if errors.Is(err, storage.ErrNotFound) {
		return process.Record{}, false, nil
	}

	return record, err == nil, err
}

// beingDeleted reports whether the newest operation is an unfinished deletion. The row of the instance may already be
// gone: older replicas delete it before the operation ends.
func beingDeleted(newest process.Record) bool {
	return newest.Kind == environment.KindDeprovision && !newest.State.Terminal()
}

// reusable reports whether a repeated request can return the operation instead of starting a new one: the operation is unfinished
// and not being canceled.
func reusable(operation process.Record) bool {
	return !operation.State.Terminal() && operation.State != process.Canceling
}

// newOperation returns a new operation on an instance, with the requester, the trace and the audit entry. The entry
// contains the fields that differ between before and after. before is nil for a creation. update may be nil.
func (a *api) newOperation(ctx context.Context, kind string, before, after *environment.Instance, update *environment.Update,
) (process.New, error) {
	operation, err := environment.NewOperation(kind, *cmp.Or(before, after), update, a.Clock.Now())
	if err != nil {
		return operation, err
	}

	var entry auditlog.Entry

	if before != nil {
		entry.Before = before.Shown()
	}

	if after != nil {
		entry.After = after.Shown()
	}

	if before != nil && after != nil {
		entry.Before, entry.After = auditlog.Difference(entry.Before, entry.After)
	}

	return ordered(ctx, operation, entry)
}

// ordered adds the requester, the trace and the audit entry to an operation.
func ordered(ctx context.Context, operation process.New, entry auditlog.Entry) (_ process.New, err error) {
	entry.By = audit.ActorOf(ctx)
	operation.OrderedBy, operation.Trace = entry.By.Name(), tracing.Traceparent(ctx)
	operation.Audit, err = entry.Encode()

	return operation, err
}
