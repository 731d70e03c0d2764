package broker

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/pivotal-cf/brokerapi/v10/domain"
	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
)

const (
	// The interval between polls, sent as Retry-After, is the age of the operation divided by pollShare,
	// between pollMin and pollMax.
	pollShare = 10
	pollMin   = time.Second
	pollMax   = 30 * time.Second

	textUnknownOperation = "operation is not an operation of this resource."
)

// lastOperation is the answer to a poll: the library's type and the fields that it lacks.
type lastOperation struct {
	apiresponses.LastOperationResponse

	// InstanceUsable reports whether the instance still works after a failed update or deletion. Nil after
	// other operations.
	InstanceUsable *bool `json:"instance_usable,omitempty"`
	// UpdateRepeatable reports whether the failed update may be sent again. Nil after other operations.
	UpdateRepeatable *bool `json:"update_repeatable,omitempty"`
}

// lastOperationOf describes an operation and, if it failed, the state in which it left the instance: usable
// after an update, unusable after a suspension, resumption or deletion. A failed update may always be repeated.
// left is the expected time to the end of the operation, zero or negative if unknown.
func lastOperationOf(record process.Record, left time.Duration) lastOperation {
	answer := lastOperation{LastOperationResponse: apiresponses.LastOperationResponse{State: stateOf(record.State)}}

	if !record.State.Terminal() {
		answer.Description = progressText(record, left)

		return answer
	}

	answer.Description = resultText(record)

	onInstance := slices.Contains(environment.Kinds(), record.Kind)
	if answer.State == domain.Failed && onInstance && record.Kind != environment.KindProvision {
		answer.InstanceUsable = new(record.Kind == environment.KindUpdate)

		if record.Kind != environment.KindDeprovision {
			answer.UpdateRepeatable = new(true)
		}
	}

	return answer
}

// pollInstance answers GET /v2/service_instances/{instance_id}/last_operation. A finished deletion is 200, succeeded:
// clients that do not expect 410 here keep the instance otherwise.
func (a *api) pollInstance(r request) (httpserver.Response, error) {
	record, err := a.operationOf(r.Context(), r.instanceID, r.query.Get("operation"), environment.Kinds()...)

	return a.polled(r, record, err, notFound(textNoInstance))
}

// pollBinding answers GET …/service_bindings/{binding_id}/last_operation.
func (a *api) pollBinding(r request) (httpserver.Response, error) {
	key := environment.BindingKey(r.instanceID, r.bindingID)

	record, err := a.operationOf(r.Context(), key, r.query.Get("operation"), environment.BindingKinds()...)
	if err == nil {
		err = a.checkPolledBinding(r, record)
	}

	return a.polled(r, record, err, notFound(textNoBinding))
}

// checkPolledBinding returns storage.ErrNotFound if the result of the operation no longer exists: a finished
// creation whose binding went with its instance, even if an instance of the same ID has a binding of the same ID
// since. A removal that succeeded needs no binding. An operation that failed remains known to the platform that
// polls it by its ID.
func (a *api) checkPolledBinding(r request, record process.Record) error {
	named := r.query.Get("operation") == record.ID

	switch {
	case !record.State.Terminal():
		return nil
	case record.State == process.Succeeded && record.Kind == environment.KindUnbind:
		return nil
	case record.State != process.Succeeded && named:
		return nil
	}

	createdAt, err := a.Bindings.CreatedAt(r.Context(), a.DB.Reader(), r.instanceID, r.bindingID)
	if err == nil && record.CreatedAt.Before(createdAt) {
		err = storage.ErrNotFound // an operation on an earlier binding
	}

	return err
}

// polled describes the polled operation, or returns the error missing if there is none.
func (a *api) polled(r request, record process.Record, err, missing error) (httpserver.Response, error) {
	httpserver.NotePoll(r.Context())

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return httpserver.Response{}, missing
	case err != nil:
		return httpserver.Response{}, err
	}

	httpserver.Note(r.Context(), logging.OperationID, record.ID)

	return a.pollResponse(record, r.query.Get("plan_id")), nil
}

// pollResponse describes an operation, with the time of the next poll while it is unfinished. planID is the plan of
// the instance as far as the platform names it, which makes the estimate of the end better.
func (a *api) pollResponse(record process.Record, planID string) httpserver.Response {
	response := httpserver.OK(lastOperationOf(record, a.Estimator.End(record.Kind, planID, record.StartedAt).Sub(a.Clock.Now())))
	if record.State.Terminal() {
		return response
	}

	age := a.Clock.Since(record.CreatedAt)

	return response.RetryAfter(min(max(age/pollShare, pollMin), pollMax))
}

// operationOf returns the requested operation of an instance or a binding, whose key is the instance ID or a
// BindingKey. The operation is an ID, or a kind, which some clients send, or empty for the newest one. If the
// key has no operation, the error is storage.ErrNotFound.
func (a *api) operationOf(ctx context.Context, key, operation string, kinds ...string) (process.Record, error) {
	if uuid.Validate(operation) == nil {
		record, err := a.Operations.Polled(ctx, a.DB.Reader(), operation)
		if err == nil && record.InstanceID == key {
			return record, nil
		}

		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return process.Record{}, err
		}
	}

	newest, err := a.Operations.Latest(ctx, a.DB.Reader(), key, kinds...)

	switch {
	case err != nil:
		return process.Record{}, err
	case operation == "" || operation == newest.Kind:
		return newest, nil
	case !slices.Contains(kinds, operation):
		return process.Record{}, invalid(textUnknownOperation)
	}

	record, found, err := a.latest(ctx, a.DB.Reader(), key, operation)
	if err == nil && !found {
		err = invalid(textUnknownOperation)
	}

	return record, err
}

// stateOf maps the states of the engine to those of the protocol.
func stateOf(state process.State) domain.LastOperationState {
	switch state {
	case process.Succeeded:
		return domain.Succeeded
	case process.Failed, process.Canceled:
		return domain.Failed
	case process.Pending, process.InProgress, process.Canceling:
	}

	return domain.InProgress
}

const (
	// syncLimit is the longest time that a request waits for an operation, which leaves time for the answer.
	syncLimit = requestLimit - 2*time.Second
	// syncRetryAfter is when a platform may repeat a request whose operation did not finish in time.
	syncRetryAfter = 2 * time.Second
)

// awaitBinding waits like await for an operation on a binding of the instance. While the instance is deleted or
// suspended, its runtime may fail at any moment. The platform then gets a ConcurrencyError instead of the failure.
func (a *api) awaitBinding(ctx context.Context, instanceID, operationID string) error {
	failed := a.await(ctx, operationID)
	if failed == nil || httpserver.RefusalOf(failed).Status < http.StatusInternalServerError {
		return failed
	}

	past, err := a.Operations.OfInstance(ctx, a.DB.Reader(), instanceID)
	if err == nil && environment.PhaseOf(past).WithoutRuntime() {
		return concurrent()
	}

	return failed
}

// await returns when the operation of a synchronous request has succeeded. It polls the database, because
// another replica may run the operation. It fails if the operation failed, or with 503 if the operation does
// not end within syncLimit. The operation then continues, and a repeated request finds it.
func (a *api) await(ctx context.Context, operationID string) error {
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()

	for {
		record, err := a.Operations.Polled(ctx, a.DB.Reader(), operationID)

		switch {
		case err != nil && ctx.Err() != nil:
			return stillRunning()
		case err != nil:
			return err
		case record.State == process.Succeeded:
			return nil
		case record.State == process.Canceled && record.Kind == environment.KindUnbind:
			return conflict(textRemovalCanceled)
		case record.State == process.Canceled, record.State == process.Canceling && record.Kind == environment.KindBind:
			return conflict(textBindingGone) // the end of a canceled creation does not matter
		case record.State.Terminal():
			return httpserver.Refuse(http.StatusBadGateway, resultText(record))
		}

		if err := a.Pause(ctx); err != nil {
			return stillRunning()
		}
	}
}

// stillRunning asks the platform to repeat a request whose operation has not ended.
func stillRunning() error {
	return &httpserver.Refusal{Status: http.StatusServiceUnavailable, Description: textStillRunning, RetryAfter: syncRetryAfter}
}
