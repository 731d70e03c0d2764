package operatorserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/program"
	"github.com/environment-broker/environment-broker/internal/upstream"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/telemetry"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/operations"
)

const (
	// pollInterval is the Retry-After value for unfinished operations.
	pollInterval = time.Second

	textPending = "Queued behind the earlier operations of this %s, if any."
)

// ListOperations handles GET /operations.
func (a *API) ListOperations(r *http.Request, query Query) (httpserver.Response, error) {
	list, err := a.OperationList(r.Context(), query)

	return httpserver.OK(list), err
}

// OperationList returns a page of operations, newest first, without their timelines. The total is counted only
// on request, because the count reads many index entries.
func (a *API) OperationList(ctx context.Context, query Query) (operatorapi.OperationList, error) {
	var list operatorapi.OperationList

	filter, err := a.filter(query)
	if err != nil {
		return list, err
	}

	var listed []process.Record

	show := func(record process.Record) operatorapi.Operation {
		listed = append(listed, record)

		return a.Operation(record)
	}

	list.Data, list.Page, err = ReadList(ctx, query.Page, filter, a.Operations.List, a.Operations.Count, show,
		func(shown operatorapi.Operation) (time.Time, string) { return shown.CreatedAt, shown.ID })
	if err != nil {
		return list, err
	}

	ids := make([]string, 0, len(list.Data))
	for _, shown := range list.Data {
		ids = append(ids, shown.InstanceID)
	}

	subjects, err := a.Subjects.Describe(ctx, ids)
	for i, record := range listed {
		list.Data[i].InstanceName = subjects[list.Data[i].InstanceID].Name

		if a.Percent != nil && !record.State.Terminal() && !record.StartedAt.IsZero() {
			list.Data[i].Percent = a.Percent(record, subjects[record.InstanceID].PlanID)
		}
	}

	return list, err
}

// filter converts the query of an operation list request to a store filter.
func (a *API) filter(query Query) (operations.Filter, error) {
	filter := operations.Filter{
		InstanceID: query.Get("instance_id"),
		Before:     query.Page.Before,
		BeforeID:   query.Page.BeforeID,
		Offset:     query.Page.Offset,
		Limit:      query.Page.Size + 1,
	}

	if kind := query.Get("kind"); kind != "" {
		if kinds := a.Subjects.Kinds(); !slices.Contains(kinds, kind) {
			return filter, Unknown("kind", kind, kinds)
		}

		filter.Kinds = []string{kind}
	}

	if state := query.Get("state"); state != "" {
		if !slices.Contains(OperationStates(), state) {
			return filter, Unknown("state", state, OperationStates())
		}

		filter.States = []process.State{process.State(state)}
	}

	stuck, err := boolean(query.Values, "stuck")
	if err != nil {
		return filter, err
	}

	if stuck {
		filter.StuckAt = a.Clock.Now()
	}

	if filter.Since, filter.Until, err = period(query.Values); err != nil {
		return filter, err
	}

	err = a.Subjects.Select(query.Values, &filter)

	return filter, err
}

// OperationStates returns all states that an operation can have.
func OperationStates() []string {
	return []string{
		string(process.Pending), string(process.InProgress), string(process.Canceling),
		string(process.Succeeded), string(process.Failed), string(process.Canceled),
	}
}

// GetOperation returns an operation with its timeline. The response has Retry-After until the operation has ended.
func (a *API) GetOperation(r *http.Request) (httpserver.Response, error) {
	httpserver.NotePoll(r.Context()) // ebctl follows operations this way

	id, err := Segment(r, "operation_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	shown, err := a.OperationDetails(r.Context(), id)
	if err != nil {
		return httpserver.Response{}, err
	}

	httpserver.Note(r.Context(), logging.OperationID, id)

	if process.State(shown.State).Terminal() {
		return httpserver.OK(shown), nil
	}

	return httpserver.OK(shown).RetryAfter(pollInterval), nil
}

// OperationDetails returns the same as CurrentOperation, but also sets the name of the instance.
func (a *API) OperationDetails(ctx context.Context, id string) (operatorapi.Operation, error) {
	shown, err := a.CurrentOperation(ctx, id)
	if err != nil {
		return shown, err
	}

	subjects, err := a.Subjects.Describe(ctx, []string{shown.InstanceID})
	shown.InstanceName = subjects[shown.InstanceID].Name

	return shown, err
}

// CurrentOperation returns an operation with its timeline. For an unfinished operation, it adds the number of the attempt, the
// reason for waiting, and the upstream system that causes the delay, if any. For one that failed or was canceled, it adds the later
// operation that prevents a retry. It does not set the name of the instance.
func (a *API) CurrentOperation(ctx context.Context, id string) (operatorapi.Operation, error) {
	record, err := a.Operations.Get(ctx, a.DB.Reader(), id)

	switch {
	case errors.Is(err, storage.ErrNotFound):
		return operatorapi.Operation{}, NotFound(textNoOperation)
	case err != nil:
		return operatorapi.Operation{}, err
	}

	timeline, err := a.Operations.Timeline(ctx, id)
	if err != nil {
		return operatorapi.Operation{}, err
	}

	shown := a.Operation(record)

	for _, entry := range timeline {
		shown.Timeline = append(shown.Timeline, operatorapi.TimelineEntry{
			Stage: entry.Stage, Step: entry.Step, Attempt: entry.Attempt, FirstAttempt: entry.FirstAttempt,
			Began: entry.Began, End: entry.End, Outcome: string(entry.Outcome), Message: entry.Message, NextRun: entry.NextRun,
		})
	}

	var forecast process.Forecast
	if a.Forecast != nil && !record.State.Terminal() {
		forecast = a.Forecast(ctx, record)
	}

	shown.Percent, shown.EstimatedEnd, shown.LatestEnd = forecast.Percent, forecast.Likely, forecast.Latest

	if a.UserText != nil {
		shown.UserText = a.UserText(record, forecast, a.Clock.Now())
	}

	if record.State.Terminal() {
		shown.LaterOperationID, err = a.later(ctx, record)

		return shown, err
	}

	attempts := seriesOf(record, timeline)
	shown.Attempt, shown.GivesUpAt = attempts.count, a.givesUpAt(record, attempts)
	shown.Why = a.why(record, timeline)
	shown.System = a.system(record.Problem.Component)

	return shown, nil
}

// later returns the ID of the operation because of which checkRetry would reject a retry of the given one: the newest operation of the
// instance or binding. It returns an empty string if the given operation is the newest, and if it neither failed nor was canceled.
func (a *API) later(ctx context.Context, record process.Record) (string, error) {
	if record.State != process.Failed && record.State != process.Canceled {
		return "", nil
	}

	newest, err := a.newest(ctx, a.DB.Reader(), record)
	if err != nil || newest.ID == record.ID {
		return "", err
	}

	return newest.ID, nil
}

// newest returns the newest operation of the instance or binding of the given operation. If retention has removed all of them, it returns
// the given one.
func (a *API) newest(ctx context.Context, tx storage.Tx, record process.Record) (process.Record, error) {
	all, err := a.Operations.OfInstance(ctx, tx, record.InstanceID)
	if err != nil || len(all) == 0 {
		return record, err
	}

	return all[0], nil
}

// Operation converts a stored operation, without its timeline, to its form in the API. It does not decrypt the data of the
// operation, so it succeeds even if the encryption key is lost.
func (a *API) Operation(record process.Record) operatorapi.Operation {
	instanceID, bindingID := a.Subjects.IDs(record)
	step := a.described(record.Kind).Step(record.Step)
	shown := operatorapi.Operation{
		ID:             record.ID,
		InstanceID:     instanceID,
		BindingID:      bindingID,
		Kind:           record.Kind,
		State:          operatorapi.OperationState(record.State),
		Description:    record.Description,
		PredecessorID:  record.PredecessorID,
		OrderedBy:      record.OrderedBy,
		TraceID:        telemetry.TraceID(a.Tracing, record),
		Stages:         a.stages[record.Kind],
		FinishedStages: record.FinishedStages,
		SkippedSteps:   record.SkippedSteps,
		Stage:          record.Stage,
		Step:           record.Step,
		StepDoes:       step.Does,
		StepOptional:   step.Optional,
		StepBegan:      record.StepBegan,
		Skippable:      a.skippable(record),
		WaitingFor:     record.WaitingFor,
		Replica:        record.Lease.Owner,
		CreatedAt:      record.CreatedAt,
		UpdatedAt:      record.UpdatedAt,
		StartedAt:      record.StartedAt,
		FinishedAt:     record.FinishedAt,

		TimelineRemovedAt: record.TimelineRemoved,
	}

	if problem := record.Problem; problem.Message != "" {
		shown.Problem = operatorapi.Problem{
			Message: problem.Message, Detail: problem.Detail, Reason: problem.Reason, Component: problem.Component,
		}
	}

	if !record.State.Terminal() {
		shown.NextRun = record.NextRun
	}

	return shown
}

// why says why the operation waits: the message of the last attempt or, for a pending operation, that it is queued. It returns an
// empty string if the operation is not waiting.
func (a *API) why(record process.Record, timeline []process.Entry) string {
	if record.State == process.Pending {
		return fmt.Sprintf(textPending, a.Subjects.Noun())
	}

	if len(timeline) == 0 {
		return ""
	}

	last := timeline[len(timeline)-1]
	if last.Outcome == process.Waiting || last.Outcome == process.Retrying {
		return last.Message
	}

	return ""
}

// GetStatus handles GET /status.
func (a *API) GetStatus(*http.Request) (httpserver.Response, error) {
	return httpserver.OK(a.StatusReport()), nil
}

// StatusReport returns the version of the service, and the state of each upstream system as this replica sees it.
func (a *API) StatusReport() operatorapi.Status {
	build := program.ReadBuild()
	shown := operatorapi.Status{Version: build.Version, Commit: build.Commit, Systems: []operatorapi.System{}}

	for _, called := range a.Systems {
		shown.Systems = append(shown.Systems, systemOf(called.Status()))
	}

	return shown
}

// GetConfiguration returns the configuration of this replica, without secrets.
func (a *API) GetConfiguration(*http.Request) (httpserver.Response, error) {
	shown := operatorapi.Configuration{Data: []operatorapi.Setting{}}
	for _, setting := range a.Settings {
		shown.Data = append(shown.Data, operatorapi.Setting{
			Name: setting.Name, Value: setting.Value, Changed: setting.Changed, Secret: setting.Secret,
		})
	}

	return httpserver.OK(shown), nil
}

// system returns the status of the upstream system with the given component name, or a zero System if there is none.
func (a *API) system(component string) operatorapi.System {
	for _, called := range a.Systems {
		if status := called.Status(); status.Component == component {
			return systemOf(status)
		}
	}

	return operatorapi.System{}
}

// systemOf converts the status of an upstream system to its form in the API.
func systemOf(status upstream.Status) operatorapi.System {
	return operatorapi.System{
		Name: status.System, State: string(status.State), CallsInFlight: status.InFlight, CallsLimit: status.Calls,
		Failures: status.Failures, FailingSince: status.FailingSince, LastFault: status.LastFault, NextTry: status.NextTry,
		RecentCalls: status.Latency.Calls, MedianSeconds: status.Latency.Median.Seconds(), P95Seconds: status.Latency.P95.Seconds(),
	}
}
