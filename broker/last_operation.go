package broker

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
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
	// pollShare is which part of its age an operation is left alone between two polls, from pollMin to pollMax.
	pollShare = 10
	pollMin   = time.Second
	pollMax   = 30 * time.Second

	textUnknownOperation = "operation is not one of this resource."
)

// told is the answer to a poll: the library's form with what it lacks.
type told struct {
	apiresponses.LastOperationResponse

	InstanceUsable   *bool `json:"instance_usable,omitempty"`
	UpdateRepeatable *bool `json:"update_repeatable,omitempty"`
}

// toldOf tells how an operation stands and, where an update or a deletion has failed, what that means for the instance. Whatever failed
// may be asked for again.
func toldOf(record process.Record) told {
	answer := told{LastOperationResponse: apiresponses.LastOperationResponse{State: stateOf(record.State)}}

	if !record.State.Terminal() {
		answer.Description = underWay(record)

		return answer
	}

	answer.Description = ended(record)

	onInstance := slices.Contains(environment.Kinds(), record.Kind)
	if answer.State == domain.Failed && onInstance && record.Kind != environment.KindProvision {
		answer.InstanceUsable = new(record.Kind == environment.KindUpdate)

		if record.Kind != environment.KindDeprovision {
			answer.UpdateRepeatable = new(true)
		}
	}

	return answer
}

// lastOperation answers GET /v2/service_instances/{instance_id}/last_operation.
func (a *api) lastOperation(r *http.Request) (httpserver.Answer, error) {
	id, err := instanceID(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	values, err := query(r)
	if err != nil {
		return httpserver.Answer{}, err
	}

	record, err := a.polled(r.Context(), id, values.Get("operation"), environment.Kinds()...)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return httpserver.Answer{}, notFound(textNoInstance)
	case err != nil:
		return httpserver.Answer{}, err
	}

	httpserver.Note(r.Context(), logging.OperationID, record.ID)

	if record.Kind == environment.KindDeprovision && record.State == process.Succeeded {
		return httpserver.Answer{}, gone()
	}

	return a.tell(record), nil
}

// tell says how far an operation is, and when to ask again.
func (a *api) tell(record process.Record) httpserver.Answer {
	answer := httpserver.OK(toldOf(record))
	if record.State.Terminal() {
		return answer
	}

	age := a.Clock.Since(record.CreatedAt)

	return answer.RetryAfter(min(max(age/pollShare, pollMin), pollMax))
}

// polled returns the operation that is asked for: by the value that was given out, by its kind as some clients do, or the newest. What
// it works on is an instance or a binding, by its key; when nothing was ever done to that, the error is storage.ErrNotFound.
func (a *api) polled(ctx context.Context, key, operation string, kinds ...string) (process.Record, error) {
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

// ended tells people what came of an operation.
func ended(record process.Record) string {
	switch record.State {
	case process.Succeeded:
		return httpserver.Shorten(firstOf(record.Description, "The operation succeeded."))
	case process.Canceled:
		return "The operation was canceled."
	default:
		return httpserver.Shorten(firstOf(record.Problem.Message, "The operation failed.") + place(record))
	}
}

// underWay tells people where an operation is and what it waits for.
func underWay(record process.Record) string {
	switch record.State {
	case process.Pending:
		return "Waits for its turn."
	case process.Canceling:
		return httpserver.Shorten("Is being canceled" + place(record))
	default:
	}

	text := firstOf(record.Description, "In progress") + place(record)
	if why := firstOf(record.Problem.Message, record.Progress); why != "" {
		text += ": " + why
	}

	return httpserver.Shorten(text)
}

// place names the stage and the step at which an operation is, where it has begun.
func place(record process.Record) string {
	if record.Stage == "" {
		return ""
	}

	parts := []string{"stage " + record.Stage}
	if record.Step != "" {
		parts = append(parts, "step "+record.Step)
	}

	return " (" + strings.Join(parts, ", ") + ")"
}
