package operator

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// pollInterval is how long who follows an operation should leave it alone.
const pollInterval = time.Second

// listOperations answers GET /operations.
func (a *api) listOperations(r *http.Request) (httpserver.Answer, error) {
	values, page, err := readQuery(r.URL.RawQuery, "instance_id", "binding_id", "kind", "state")
	if err != nil {
		return httpserver.Answer{}, err
	}

	key := values.Get("instance_id")
	if bindingID := values.Get("binding_id"); bindingID != "" {
		if key == "" {
			return httpserver.Answer{}, invalid("binding_id needs the instance_id beside it: it is one of that instance.")
		}

		key = environment.BindingKey(key, bindingID)
	}

	filter := operations.Filter{
		InstanceID: key,
		Kind:       values.Get("kind"),
		State:      process.State(values.Get("state")),
		Before:     page.before,
		BeforeID:   page.beforeID,
		Offset:     page.offset,
		Limit:      page.size + 1,
	}

	if filter.State != "" && !slices.Contains(states(), string(filter.State)) {
		return httpserver.Answer{}, invalid(fmt.Sprintf("The state %q is not known. Use %s.", filter.State, strings.Join(states(), ", ")))
	}

	records, err := a.Operations.List(r.Context(), filter)
	if err != nil {
		return httpserver.Answer{}, err
	}

	records, shown := pageOf(records, page.size, func(record process.Record) (time.Time, string) {
		return record.CreatedAt, record.ID
	})

	list := operatorapi.OperationList{Data: []operatorapi.Operation{}, Page: shown}
	for _, record := range records {
		list.Data = append(list.Data, a.operation(record))
	}

	if page.total {
		total, err := a.Operations.Count(r.Context(), filter)
		if err != nil {
			return httpserver.Answer{}, err
		}

		list.TotalCount = &total
	}

	return httpserver.OK(list), nil
}

// states are the states of operations.
func states() []string {
	return []string{
		string(process.Pending), string(process.InProgress), string(process.Canceling),
		string(process.Succeeded), string(process.Failed), string(process.Canceled),
	}
}

// getOperation answers GET /operations/{operation_id}: the operation with all that happened to it.
func (a *api) getOperation(r *http.Request) (httpserver.Answer, error) {
	id, err := segment(r, "operation_id")
	if err != nil {
		return httpserver.Answer{}, err
	}

	record, err := a.Operations.Get(r.Context(), a.DB.Reader(), id)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return httpserver.Answer{}, notFound(textNoOperation)
	case err != nil:
		return httpserver.Answer{}, err
	}

	httpserver.Note(r.Context(), logging.OperationID, id)

	timeline, err := a.Operations.Timeline(r.Context(), id)
	if err != nil {
		return httpserver.Answer{}, err
	}

	answer := httpserver.OK(a.explained(record, timeline))
	if !record.State.Terminal() {
		answer = answer.RetryAfter(pollInterval)
	}

	return answer, nil
}
