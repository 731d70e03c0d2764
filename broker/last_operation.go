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
	// The interval between polls, sent as Retry-After, is the age of the operation divided by pollShare, but at
	// least pollMin and at most pollMax.
	pollShare = 10
	pollMin   = time.Second
	pollMax   = 30 * time.Second

	textUnknownOperation = "The operation parameter does not name an operation of this resource, or the operation was removed after its retention period."
)

// lastOperation is the response to a poll. It adds the fields that brokerapi's type lacks.
type lastOperation struct {
	apiresponses.LastOperationResponse

	// InstanceUsable reports whether the instance works after a failed update, suspension, resumption or deletion. It is
	// nil for all other operations and results.
	InstanceUsable *bool `json:"instance_usable,omitempty"`
	// UpdateRepeatable is true for a failed update, suspension or resumption, which the platform may repeat. It is nil
	// for all other operations and results.
	UpdateRepeatable *bool `json:"update_repeatable,omitempty"`
}

// lastOperationOf describes an operation. After a failure it also describes the instance: usable after an update,
// unusable after a suspension, resumption or deletion. For all of these except a deletion, update_repeatable is true.
func lastOperationOf(record process.Record, forecast process.Forecast, now time.Time) lastOperation {
	answer := lastOperation{LastOperationResponse: apiresponses.LastOperationResponse{
		State: stateOf(record.State), Description: OperationText(record, forecast, now),
	}}

	onInstance := slices.Contains(environment.PlatformKinds(), record.Kind)
	if answer.State == domain.Failed && onInstance && record.Kind != environment.KindProvision {
		answer.InstanceUsable = new(record.Kind == environment.KindUpdate)

		if record.Kind != environment.KindDeprovision {
			answer.UpdateRepeatable = new(true)
		}
	}

	return answer
}

// pollInstance handles GET /v2/service_instances/{instance_id}/last_operation. The response for a completed deletion is 200 with
// the state succeeded, because some clients do not expect 410 here and would keep the instance. Upgrades, which operators start,
// are not shown: the platform sees the newest operation that is not an upgrade.
func (a *api) pollInstance(r request) (httpserver.Response, error) {
	record, err := a.operationOf(r, a.DB.Reader(), environment.PlatformKinds()...)

	return a.polled(r, record, err, notFound(textNoInstance))
}

// polled returns the response to a poll: the description of the record, or err if it is not nil. It replaces
// storage.ErrNotFound with missing.
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

// pollResponse returns the description of an operation and, while the operation is unfinished, the time of the next
// poll. planID may be empty; with a plan, the forecast is more accurate.
func (a *api) pollResponse(record process.Record, planID string) httpserver.Response {
	now := a.Clock.Now()

	response := httpserver.OK(lastOperationOf(record, a.Estimator.Forecast(record, planID, now), now))
	if record.State.Terminal() {
		return response
	}

	age := a.Clock.Since(record.CreatedAt)

	return response.RetryAfter(min(max(age/pollShare, pollMin), pollMax))
}

// operationOf returns the operation on the instance that a platform polls. The operation parameter of the request is the ID of an
// operation, a kind (some clients send one), or empty for the newest operation. If there is no operation that the platform may see,
// the error is storage.ErrNotFound.
func (a *api) operationOf(r request, tx storage.Tx, kinds ...string) (process.Record, error) {
	record, err := a.namedOperation(r, tx)
	if !errors.Is(err, storage.ErrNotFound) {
		return record, err
	}

	if r.instanceID, err = a.lookupID(r.Context(), tx, r.instanceID); err != nil {
		return process.Record{}, err
	}

	return a.newestOperation(r, tx, kinds...)
}

// namedOperation returns the operation whose ID is the operation parameter of the request, on the binding if the request names one,
// and otherwise on the instance. If there is no such operation that the platform may see, the error is storage.ErrNotFound.
func (a *api) namedOperation(r request, tx storage.Tx) (process.Record, error) {
	operation := r.query.Get("operation")
	if uuid.Validate(operation) != nil {
		return process.Record{}, storage.ErrNotFound
	}

	record, owner, err := a.Instances.Polled(r.Context(), tx, r.instanceID, operation)
	if err == nil && (record.InstanceID != r.key() || !callerOf(r.Context()).sees(record, owner)) {
		err = storage.ErrNotFound
	}

	return record, err
}

// newestOperation returns the newest operation of the kind in the operation parameter of the request, or of the given kinds if the
// parameter is empty. The caller has checked that the platform may see the instance.
func (a *api) newestOperation(r request, tx storage.Tx, kinds ...string) (process.Record, error) {
	ctx, operation, key := r.Context(), r.query.Get("operation"), r.key()

	newest, err := a.Operations.Latest(ctx, tx, key, kinds...)

	switch {
	case err != nil:
		return process.Record{}, err
	case operation == "" || operation == newest.Kind:
		return newest, nil
	case !slices.Contains(kinds, operation):
		return process.Record{}, invalid(textUnknownOperation)
	}

	record, found, err := a.latest(ctx, tx, key, operation)
	if err == nil && !found {
		err = invalid(textUnknownOperation)
	}

	return record, err
}

// stateOf converts an engine state to an OSB state.
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
	// syncLimit is the maximum time that a request waits for an operation. The rest of requestLimit is left for
	// writing the response.
	syncLimit = requestLimit - 2*time.Second
	// syncRetryAfter is the time after which platforms should repeat a request whose operation did not finish in
	// time.
	syncRetryAfter = 2 * time.Second
)

// awaitBinding calls await for an operation on a binding. If the operation fails while the instance is being deleted or
// suspended, or afterwards, the platform gets a ConcurrencyError instead of the failure: the runtime may already be
// gone.
func (a *api) awaitBinding(ctx context.Context, instanceID, operationID string) error {
	failed := a.await(ctx, operationID, syncLimit)
	if failed == nil || httpserver.RefusalOf(failed).Status < http.StatusInternalServerError {
		return failed
	}

	past, err := a.Operations.OfInstance(ctx, a.DB.Reader(), instanceID)
	if err == nil && environment.PhaseOf(past).WithoutRuntime() {
		return unprocessable(codeConcurrency, textOvertaken)
	}

	return failed
}

// await returns when the operation has succeeded. It polls the database, because another replica may run the operation. It
// returns an error if the operation failed, and a 503 if the operation takes longer than limit or syncLimit. In the latter case
// the operation continues, and a repeated request finds it.
func (a *api) await(ctx context.Context, operationID string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, min(limit, syncLimit))
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
			return conflict(textBindingGone) // no need to wait until the canceled creation has ended
		case record.State.Terminal():
			return httpserver.Refuse(http.StatusBadGateway, resultText(record))
		}

		if err := a.Pause(ctx); err != nil {
			return stillRunning()
		}
	}
}

// stillRunning returns a 503 that asks the platform to repeat the request, because the operation has not ended.
func stillRunning() error {
	return &httpserver.Refusal{Status: http.StatusServiceUnavailable, Description: textStillRunning, RetryAfter: syncRetryAfter}
}
