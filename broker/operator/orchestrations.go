package operator

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/auth"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/environment/fleet"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/orchestrations"
)

const (
	// retryPath is the only path in openapi.yaml that also accepts forms, for compatibility with Kyma Environment Broker.
	retryPath = "/orchestrations/{orchestration_id}/retry"

	textOrchestration      = `The body is invalid. Send {"targets": {"include": [{"target": "all"}]}} as JSON. See /openapi.yaml for all fields.`
	textOrchestrationRetry = `The body is invalid. Send {"operationIDs": ["…"], "immediate": false} as JSON, or a form with the fields operation-id and immediate. All fields are optional.`
)

// Orchestrator accepts orchestrations and changes to them. orchestration.Orders implements it. Errors come from the database or carry
// a failure.Kind.
type Orchestrator interface {
	Create(ctx context.Context, kind string, parameters fleet.Parameters) (id string, err error)
	CreatePlan(ctx context.Context, kind string, parameters fleet.Parameters) (id string, err error)
	Apply(ctx context.Context, id string, strict bool) ([]orchestration.Changed, error)
	Cancel(ctx context.Context, id string) error
	Pause(ctx context.Context, id string) error
	Resume(ctx context.Context, id string) error
	Retry(ctx context.Context, id string, retry orchestration.Retry) (orchestration.Retried, error)
	ChooseTime(ctx context.Context, instanceID string, at time.Time) error
	Undo(ctx context.Context, id string, plan bool) (undoID string, err error)
}

// OrchestrateKyma starts an orchestration that upgrades Kyma.
func (a *API) OrchestrateKyma(r *http.Request) (httpserver.Response, error) {
	return a.orchestrate(r, environment.KindUpgradeKyma)
}

// OrchestrateCluster starts an orchestration that upgrades clusters.
func (a *API) OrchestrateCluster(r *http.Request) (httpserver.Response, error) {
	return a.orchestrate(r, environment.KindUpgradeCluster)
}

func (a *API) orchestrate(r *http.Request, kind string) (httpserver.Response, error) {
	parameters, err := a.readOrchestration(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	id, err := a.Orchestrator.Create(r.Context(), kind, parameters)
	a.logOrchestration(r.Context(), id, "start orchestration of kind "+kind, err)

	return httpserver.Response{Status: http.StatusAccepted, Body: operatorapi.AcceptedOrchestration{OrchestrationID: id}}, err
}

// readOrchestration reads the parameters of an orchestration from the body, and checks the plans of its targets.
func (a *API) readOrchestration(r *http.Request) (fleet.Parameters, error) {
	var parameters fleet.Parameters
	if err := operatorserver.ReadStrictly(r.Body, &parameters, textOrchestration); err != nil {
		return parameters, err
	}

	return parameters, a.checkPlans(r.Context(), parameters.Targets)
}

// checkPlans rejects targets with a plan that neither the catalog nor an instance has. Such a target would select no instances, and as an
// exclusion leave none out.
func (a *API) checkPlans(ctx context.Context, targets fleet.Targets) error {
	plans := a.Catalog.Plans()

	for _, target := range slices.Concat(targets.Include, targets.Exclude) {
		named := func(plan *catalog.Plan) bool { return plan.Name == target.PlanName }
		if target.PlanName == "" || target.RuntimeID != "" || slices.ContainsFunc(plans, named) {
			continue
		}

		// Instances keep plans that the catalog no longer has.
		list, err := a.Instances.List(ctx, instances.Filter{Plan: target.PlanName, Limit: 1})
		if err != nil {
			return err
		}

		if len(list) == 0 || list[0].Instance.PlanName != target.PlanName {
			return operatorserver.Unknown("plan", target.PlanName, a.Catalog.Offered())
		}
	}

	return nil
}

// logOrchestration logs a change to an orchestration and the user who made it. If err is not nil, it logs that the change failed.
func (a *API) logOrchestration(ctx context.Context, id, action string, err error) {
	line := a.Log.WithFields(logrus.Fields{
		logging.User: cmp.Or(auth.FromContext(ctx).Name, operatorserver.Anonymous), "orchestration_id": id,
	})

	if err != nil {
		line.WithError(err).Warn("audit: failed: " + action)
	} else {
		line.Info("audit: " + action)
	}
}

// ListOrchestrations handles GET /orchestrations.
func (a *API) ListOrchestrations(r *http.Request, query operatorserver.Query) (httpserver.Response, error) {
	list, err := a.OrchestrationList(r.Context(), query)

	return httpserver.OK(list), err
}

// OrchestrationList returns a page of orchestrations.
func (a *API) OrchestrationList(ctx context.Context, query operatorserver.Query) (operatorapi.OrchestrationList, error) {
	states, err := statesOf(query, environment.OrchestrationStates())
	if err != nil {
		return operatorapi.OrchestrationList{}, err
	}

	listed, total, err := a.Orchestrations.List(ctx, states, query.Page.Size, query.Page.Offset)
	if err != nil {
		return operatorapi.OrchestrationList{}, err
	}

	var unfinished []string

	for _, each := range listed {
		if !each.State.Ended() && each.State != environment.OrchestrationPlanned {
			unfinished = append(unfinished, each.ID)
		}
	}

	counts, err := a.Orchestrations.CountTargets(ctx, a.DB.Reader(), unfinished)
	if err != nil {
		return operatorapi.OrchestrationList{}, err
	}

	list := operatorapi.OrchestrationList{Data: []operatorapi.Orchestration{}, Page: operatorapi.Page{Count: len(listed), TotalCount: &total}}
	for _, each := range listed {
		shown := shownOrchestration(each)
		shown.Percent = orchestration.PercentOf(counts[each.ID])
		list.Data = append(list.Data, shown)
	}

	return list, nil
}

// statesOf returns the states in the query parameter of this name, a list separated by commas. Empty elements are omitted. It returns an
// error for a state that is not in known.
func statesOf[S ~string](query operatorserver.Query, known []S) ([]string, error) {
	states := strings.FieldsFunc(query.Get("state"), func(char rune) bool { return char == ',' })

	for _, state := range states {
		if !slices.Contains(known, S(state)) {
			return nil, operatorserver.Unknown("state", S(state), known)
		}
	}

	return states, nil
}

func shownOrchestration(shown environment.Orchestration) operatorapi.Orchestration {
	response := operatorapi.Orchestration{
		OrchestrationID: shown.ID, Type: shown.Kind, State: string(shown.State), Description: shown.Description,
		CreatedAt: shown.CreatedAt, UpdatedAt: shown.UpdatedAt, Parameters: shown.Parameters, OrderedBy: shown.OrderedBy,
		Undoes: shown.Undoes, AppliedBy: shown.AppliedBy, AppliedAt: shown.AppliedAt, Wave: shown.Wave, SoakUntil: shown.SoakUntil,
	}

	if shown.State == environment.OrchestrationPlanned {
		response.ExpiresAt = shown.CreatedAt.Add(environment.PlanLifetime)
	}

	return response
}

// find returns the orchestration that the request path names.
func (a *API) find(r *http.Request) (environment.Orchestration, error) {
	id, err := operatorserver.Segment(r, "orchestration_id")
	if err != nil {
		return environment.Orchestration{}, err
	}

	return a.findOrchestration(r.Context(), id)
}

func (a *API) findOrchestration(ctx context.Context, id string) (environment.Orchestration, error) {
	found, err := a.Orchestrations.Get(ctx, a.DB.Reader(), id)
	if errors.Is(err, storage.ErrNotFound) {
		err = operatorserver.NotFound("The orchestration does not exist.")
	}

	return found, err
}

// GetOrchestration handles GET /orchestrations/{orchestration_id}.
func (a *API) GetOrchestration(r *http.Request) (httpserver.Response, error) {
	id, err := operatorserver.Segment(r, "orchestration_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	shown, err := a.OrchestrationDetails(r.Context(), id)

	return httpserver.OK(shown), err
}

// OrchestrationDetails returns an orchestration with the number of targets in each state, an explanation and a forecast.
func (a *API) OrchestrationDetails(ctx context.Context, id string) (operatorapi.Orchestration, error) {
	found, err := a.findOrchestration(ctx, id)
	if err != nil {
		return operatorapi.Orchestration{}, err
	}

	shown := shownOrchestration(found)

	if shown.OperationStats, err = a.Orchestrations.Stats(ctx, a.DB.Reader(), found.ID); err != nil {
		return operatorapi.Orchestration{}, err
	}

	waves, err := a.Orchestrations.WaveStats(ctx, a.DB.Reader(), found.ID)
	shown.Explanation = orchestration.Explain(found, waves, a.Clock.Now())

	var starts []orchestrations.Start

	if err == nil && orchestration.NeedsStarts(found) {
		starts, err = a.Orchestrations.Starts(ctx, a.DB.Reader(), found.ID)
	}

	forecast := orchestration.ForecastOf(found, waves, starts, a.Estimator, a.Clock.Now())
	shown.Percent, shown.EstimatedEnd, shown.LatestEnd = forecast.Percent, forecast.Likely, forecast.Latest

	for _, wave := range slices.Sorted(maps.Keys(waves)) {
		shown.Waves = append(shown.Waves, operatorapi.OrchestrationWave{Wave: wave, Percent: forecast.Waves[wave], OperationStats: waves[wave]})
	}

	return shown, err
}

// ListOrchestrationOperations handles GET /orchestrations/{orchestration_id}/operations.
func (a *API) ListOrchestrationOperations(r *http.Request, query operatorserver.Query) (httpserver.Response, error) {
	id, err := operatorserver.Segment(r, "orchestration_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	list, err := a.TargetList(r.Context(), id, query)

	return httpserver.OK(list), err
}

// TargetList returns a page of an orchestration's targets.
func (a *API) TargetList(ctx context.Context, orchestrationID string, query operatorserver.Query) (operatorapi.OrchestrationOperationList, error) {
	found, err := a.findOrchestration(ctx, orchestrationID)
	if err != nil {
		return operatorapi.OrchestrationOperationList{}, err
	}

	states, err := statesOf(query, environment.TargetStates())
	if err != nil {
		return operatorapi.OrchestrationOperationList{}, err
	}

	listed, total, err := a.Orchestrations.ListTargets(ctx, found.ID, orchestrations.Filter{
		States: states, Limit: query.Page.Size, Offset: query.Page.Offset,
	})
	if err != nil {
		return operatorapi.OrchestrationOperationList{}, err
	}

	list := operatorapi.OrchestrationOperationList{
		Data: []operatorapi.OrchestrationOperation{}, Page: operatorapi.Page{Count: len(listed), TotalCount: &total},
	}
	for _, each := range listed {
		list.Data = append(list.Data, shownTarget(found, each))
	}

	return list, nil
}

func shownTarget(of environment.Orchestration, target orchestrations.Listed) operatorapi.OrchestrationOperation {
	shown := operatorapi.OrchestrationOperation{
		OperationID: target.OperationID, OrchestrationID: of.ID, InstanceID: target.InstanceID, RuntimeID: target.Instance.RuntimeID,
		GlobalAccountID: target.Instance.GlobalAccountID, SubAccountID: target.Instance.SubAccountID,
		ServicePlanID: target.Instance.PlanID, ServicePlanName: target.Instance.PlanName, ShootName: target.Instance.ShootName,
		DryRun: of.Parameters.DryRun, MaintenanceWindowBegin: target.NotBefore, MaintenanceWindowEnd: target.NotAfter,
		MaintenanceWindow: target.Window, State: target.State,
		Description: joinTexts(target.Description, target.Problem), FromVersion: target.FromVersion, ToVersion: target.ToVersion, Region: target.Region,
		ChosenAt: target.ChosenAt, ChosenBy: target.ChosenBy,
	}

	if target.State != string(environment.TargetLeftOut) {
		shown.Wave = target.Wave
	}

	return shown
}

// joinTexts joins a description with a problem, unless the problem is empty or equal to the description.
func joinTexts(description, problem string) string {
	if problem == "" || description == problem {
		return description
	}

	return strings.TrimPrefix(description+": "+problem, ": ")
}

// GetOrchestrationOperation returns a target of an orchestration.
func (a *API) GetOrchestrationOperation(r *http.Request) (httpserver.Response, error) {
	found, err := a.find(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	operationID, err := operatorserver.Segment(r, "operation_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	listed, _, err := a.Orchestrations.ListTargets(r.Context(), found.ID, orchestrations.Filter{OperationID: operationID, Limit: 1})
	if err == nil && len(listed) == 0 {
		err = operatorserver.NotFound("The orchestration has no such operation.")
	}

	if err != nil {
		return httpserver.Response{}, err
	}

	return httpserver.OK(shownTarget(found, listed[0])), nil
}

// CancelOrchestration cancels an orchestration.
func (a *API) CancelOrchestration(r *http.Request) (httpserver.Response, error) {
	return changeOrchestration(r, a.StopOrchestration)
}

// PauseOrchestration pauses an orchestration, which then starts no more upgrades.
func (a *API) PauseOrchestration(r *http.Request) (httpserver.Response, error) {
	return changeOrchestration(r, a.HoldOrchestration)
}

// ResumeOrchestration continues an orchestration that is paused or gated.
func (a *API) ResumeOrchestration(r *http.Request) (httpserver.Response, error) {
	return changeOrchestration(r, a.ContinueOrchestration)
}

// changeOrchestration calls change with the orchestration ID from the request path, and responds with this ID.
func changeOrchestration(r *http.Request, change func(ctx context.Context, id string) error) (httpserver.Response, error) {
	id, err := operatorserver.Segment(r, "orchestration_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	return httpserver.OK(operatorapi.AcceptedOrchestration{OrchestrationID: id}), change(r.Context(), id)
}

// StopOrchestration cancels an orchestration and logs the result.
func (a *API) StopOrchestration(ctx context.Context, id string) error {
	err := a.Orchestrator.Cancel(ctx, id)
	a.logOrchestration(ctx, id, "cancel orchestration", err)

	return err
}

// HoldOrchestration pauses an orchestration and logs the result.
func (a *API) HoldOrchestration(ctx context.Context, id string) error {
	err := a.Orchestrator.Pause(ctx, id)
	a.logOrchestration(ctx, id, "pause orchestration", err)

	return err
}

// ContinueOrchestration continues an orchestration that is paused or gated, and logs the result.
func (a *API) ContinueOrchestration(ctx context.Context, id string) error {
	err := a.Orchestrator.Resume(ctx, id)
	a.logOrchestration(ctx, id, "resume orchestration", err)

	return err
}

// RetryOrchestration retries failed operations of an orchestration.
func (a *API) RetryOrchestration(r *http.Request) (httpserver.Response, error) {
	id, err := operatorserver.Segment(r, "orchestration_id")
	if err != nil {
		return httpserver.Response{}, err
	}

	wanted, err := readRetry(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	retried, err := a.RetryTargets(r.Context(), id, wanted)

	return httpserver.Response{Status: http.StatusAccepted, Body: retried}, err
}

// RetryTargets retries the failed operations of an orchestration that wanted.OperationIDs lists, or all of them if the list is
// empty. It logs the result.
func (a *API) RetryTargets(ctx context.Context, id string, wanted operatorapi.OrchestrationRetry) (operatorapi.OrchestrationRetried, error) {
	retried, err := a.Orchestrator.Retry(ctx, id, orchestration.Retry{OperationIDs: wanted.OperationIDs, Immediate: wanted.Immediate})
	a.logOrchestration(ctx, id, "retry "+english.Plural(len(retried.Targets), "operation", "")+" of orchestration", err)

	if err != nil {
		return operatorapi.OrchestrationRetried{}, err
	}

	shown := operatorapi.OrchestrationRetried{
		OrchestrationID: id, RetryShoots: []string{}, OldOperations: append([]string{}, retried.Old...),
		InvalidOperations: append([]string{}, retried.Invalid...), Msg: "Retrying " + english.Plural(len(retried.Targets), "operation", "") + ".",
	}

	for _, target := range retried.Targets {
		shown.RetryShoots = append(shown.RetryShoots, cmp.Or(target.ShootName, target.InstanceID))
	}

	return shown, nil
}

// readRetry reads the body, which is JSON or a form.
func readRetry(r *http.Request) (operatorapi.OrchestrationRetry, error) {
	var wanted operatorapi.OrchestrationRetry

	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != operatorserver.MediaForm {
		return wanted, operatorserver.ReadStrictly(r.Body, &wanted, textOrchestrationRetry)
	}

	if err := r.ParseForm(); err != nil {
		return wanted, operatorserver.Invalid(textOrchestrationRetry)
	}

	for name, values := range r.PostForm {
		switch name {
		case "operation-id", "operation-id[]":
			wanted.OperationIDs = append(wanted.OperationIDs, values...)
		case "immediate":
			immediate, err := strconv.ParseBool(values[0])
			if err != nil {
				return wanted, operatorserver.Invalid("immediate must be true or false.")
			}

			wanted.Immediate = immediate
		default:
			return wanted, operatorserver.Invalid(textOrchestrationRetry)
		}
	}

	return wanted, nil
}

// CancelOperation handles POST /operations/{operation_id}/cancel.
func (a *API) CancelOperation(r *http.Request) (httpserver.Response, error) {
	return a.Intervene(r, operatorserver.DoneCancel, a.Cancel)
}

// Cancel cancels an operation. It rejects an operation that conducts an orchestration; see textConductor.
func (a *API) Cancel(ctx context.Context, operationID string, wanted operatorapi.Intervention) (operatorapi.Operation, error) {
	record, err := a.Operations.Get(ctx, a.DB.Reader(), operationID)
	if err == nil && record.Kind == environment.KindOrchestrate {
		return operatorapi.Operation{}, operatorserver.Conflict(textConductor)
	}

	return a.API.Cancel(ctx, operationID, wanted)
}
