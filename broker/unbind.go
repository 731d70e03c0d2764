package broker

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/environment-broker/environment-broker/broker/jobs"
	"github.com/environment-broker/environment-broker/internal/audit"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/tracing"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/auditlog"
)

// unbind handles DELETE …/service_bindings/{binding_id}. The response is 200 if the removal has succeeded, 202 with
// the operation if the platform polls and the removal has not succeeded within Options.UnbindWait, or 410 if the
// binding does not exist. A removal is accepted while the binding is being created; it cancels the creation.
func (a *api) unbind(r request) (httpserver.Response, error) {
	result, err := decide(r.Context(), a, func(tx storage.Tx) (outcome, error) { return a.decideUnbind(r.Context(), tx, r) })
	if err != nil {
		return httpserver.Response{}, err
	}

	a.started(r.Context(), result)

	ended, err := a.awaitUnbind(r, result.operation)
	if err != nil {
		return httpserver.Response{}, err
	}

	if !ended {
		return httpserver.Response{Status: http.StatusAccepted, Body: bindingOperation{result.operation}}, nil
	}

	return httpserver.OK(struct{}{}), nil
}

// awaitUnbind waits for the removal of a binding. If the platform polls, awaitUnbind waits no longer than Options.UnbindWait, and
// returns false if the removal has not succeeded by then. If the removal has failed, the platform learns this from its next poll.
func (a *api) awaitUnbind(r request, operationID string) (ended bool, err error) {
	if r.acceptsIncomplete() && supports(r.Request, asyncBindings) {
		return a.UnbindWait > 0 && a.await(r.Context(), operationID, a.UnbindWait) == nil, nil
	}

	err = a.awaitBinding(r.Context(), r.instanceID, operationID)

	return err == nil, err
}

// decideUnbind returns the running removal or accepts a new one. It locks the instance first, so that concurrent
// requests for bindings of the instance run one after another.
func (a *api) decideUnbind(ctx context.Context, tx storage.Tx, r request) (outcome, error) {
	var err error
	if r.instanceID, err = a.lookupID(ctx, tx, r.instanceID); err != nil {
		return outcome{}, err
	}

	if _, err := a.Instances.Lock(ctx, tx, r.instanceID); err != nil {
		return outcome{}, err
	}

	instance, err := a.Instances.Get(ctx, tx, r.instanceID)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return outcome{}, gone(textNoBinding)
	case err != nil:
		return outcome{}, err
	case checkReached(ctx, instance) != nil:
		return outcome{}, errLostRace
	case instance.ServiceID != r.query.Get("service_id") || instance.PlanID != r.query.Get("plan_id"):
		return outcome{}, wrongIDs(instance)
	}

	binding, err := a.Bindings.Get(ctx, tx, r.instanceID, r.bindingID)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return outcome{}, gone(textNoBinding)
	case err != nil:
		return outcome{}, err
	}

	if binding.State == environment.BindingDeleting {
		running, err := a.operationOn(ctx, tx, binding)
		if err != nil || reusable(running) {
			return outcome{operation: running.ID}, err
		}
	}

	operation, err := a.removeBinding(ctx, tx, instance, binding, "")

	return outcome{operation, true}, err
}

// removeBinding accepts the removal of a binding inside the transaction and cancels the creation of the binding. It
// returns the ID of the operation. The timeline and the audit log contain the reason, which is empty for a platform's
// request. The error is errLostRace if another transaction has started a removal or ended the creation since the
// binding was read.
func (o Options) removeBinding(ctx context.Context, tx storage.Tx, instance environment.Instance, binding environment.Binding, reason string,
) (string, error) {
	now := o.Clock.Now()

	operation, err := environment.NewBindingOperation(environment.KindUnbind, uuid.NewString(), instance, binding, now)
	if err != nil {
		return "", err
	}

	// Lock the binding first, and then the operation that creates it. The end of that operation takes the locks in the same order,
	// so no deadlock can occur.
	marked, err := o.Bindings.MarkDeleting(ctx, tx, binding, operation.ID)
	if err != nil {
		return "", err
	}

	if !marked {
		return "", errLostRace
	}

	if binding.State == environment.BindingCreating {
		if _, err := o.Operations.CancelOne(ctx, tx, binding.OperationID, "the binding is being removed", now); err != nil {
			return "", err
		}
	}

	operation.Why = reason

	entry := auditlog.Entry{Before: binding.Shown(), Reason: reason}
	if operation, err = o.withBindingAudit(ctx, tx, operation, binding, entry); err != nil {
		return "", err
	}

	return operation.ID, o.Operations.Accept(ctx, tx, operation)
}

// withBindingAudit sets the requester and the trace of an operation on a binding. It adds the IDs and the action to the
// entry, and records the entry in the audit log.
func (o Options) withBindingAudit(ctx context.Context, tx storage.Tx, operation process.New, binding environment.Binding, entry auditlog.Entry,
) (process.New, error) {
	operation.OrderedBy, operation.Trace = audit.ActorOf(ctx).Name(), tracing.Traceparent(ctx)
	entry.Action, entry.OperationID, entry.Status = operation.Kind, operation.ID, http.StatusAccepted
	entry.InstanceID, entry.BindingID = binding.InstanceID, binding.BindingID

	return operation, o.Recorder.Record(ctx, tx, entry)
}

const (
	// expireEvery is the interval between two searches for expired bindings. It need not be short, because runtimes
	// reject expired credentials without the broker.
	expireEvery = 30 * time.Second
	// expireAtOnce is the maximum number of bindings that one run removes, unless the job's limit is higher.
	expireAtOnce = 500
	// removeAgain is the delay before a failed removal is repeated. It is long because the runtime may never come back.
	removeAgain = time.Hour
)

// ExpiryOfBindings returns the job that removes bindings that have expired or could not be created.
func ExpiryOfBindings(options Options, limit int) jobs.Job {
	return jobs.Job{
		Name: "bindings", Description: "Remove the bindings that have expired or could not be created.",
		Items: "bindings", Every: expireEvery, Limit: limit, Reason: "the binding has expired or could not be created",
		Due: func(ctx context.Context) (jobs.Due, error) {
			return options.expiredBindings(ctx, max(expireAtOnce, limit+1)) // the job needs a confirmation if more than limit bindings are due
		},
		Protection: "Deletion protection has no effect: bindings are removed, and the instances and their clusters are kept.",
	}
}

// expiredBindings returns at most count bindings that are due for removal.
func (o Options) expiredBindings(ctx context.Context, count int) (jobs.Due, error) {
	now := o.Clock.Now()

	expired, err := o.Bindings.Removable(ctx, now, now.Add(-removeAgain), count)
	if err != nil {
		return jobs.Due{}, err
	}

	var due jobs.Due

	for _, binding := range expired {
		due.Items = append(due.Items, jobs.Item{ID: binding.ID, InstanceID: binding.InstanceID, Do: func(ctx context.Context, reason string) (bool, error) {
			return o.expireBinding(ctx, binding, reason)
		}})
	}

	return due, nil
}

// expireBinding removes one binding in a separate transaction, so that a failure does not affect other bindings.
func (o Options) expireBinding(ctx context.Context, binding environment.Binding, reason string) (changed bool, err error) {
	err = o.DB.InTx(ctx, func(tx storage.Tx) error {
		instance, err := o.Instances.Get(ctx, tx, binding.InstanceID)
		if err != nil {
			return err
		}

		_, err = o.removeBinding(ctx, tx, instance, binding, reason)

		return err
	})
	if errors.Is(err, errLostRace) || errors.Is(err, storage.ErrNotFound) || storage.IsDuplicate(err) {
		return false, nil // another replica removes the binding, or the instance is gone
	}

	if err == nil {
		o.Wake()
	}

	return err == nil, failure.While(err, "removing binding %s", binding.ID)
}
