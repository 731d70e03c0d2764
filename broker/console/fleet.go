package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/broker/orchestration"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
)

// The operator API endpoints for orchestrations.
const (
	orchestrationsEndpoint = "GET /orchestrations"
	orchestrationEndpoint  = "GET /orchestrations/{orchestration_id}"
	pauseEndpoint          = "PUT /orchestrations/{orchestration_id}/pause"
	resumeEndpoint         = "PUT /orchestrations/{orchestration_id}/resume"
	stopEndpoint           = "PUT /orchestrations/{orchestration_id}/cancel"
	applyEndpoint          = "POST /orchestrations/{orchestration_id}/apply"
	retryTargetsEndpoint   = "POST /orchestrations/{orchestration_id}/retry"
)

// targetsLength is the maximum number of targets on an orchestration's page. The console does not show further targets.
const targetsLength = 100

// orchestrations shows a page of the orchestration list. Its URL takes the same parameters as GET /orchestrations.
func (c *console) orchestrations(r *http.Request) (result, error) {
	live := c.address(r, "", "")

	query, values, err := c.readQuery(r, orchestrationsEndpoint)
	if err != nil {
		return result{}, err
	}

	list, err := c.API.OrchestrationList(r.Context(), query)
	if err != nil {
		return result{}, err
	}

	return result{page: views.Page{
		Title: "Orchestrations", Section: "/console/orchestrations", Live: live,
		Body: views.OrchestrationsPage(views.Orchestrations{
			List: list.Data, Query: values, Pager: numbered("/console/orchestrations", values, query.Page, list.Page), Now: c.API.Clock.Now(),
		}),
	}}, nil
}

// orchestration shows an orchestration with its waves and targets.
func (c *console) orchestration(r *http.Request) (result, error) {
	id, err := operatorserver.Segment(r, "orchestration_id")
	if err != nil {
		return result{}, err
	}

	return c.showOrchestration(r, id, "")
}

// showOrchestration shows an orchestration. refused says why the last change was rejected, or is empty.
func (c *console) showOrchestration(r *http.Request, id, refused string) (result, error) {
	live := c.address(r, "orchestration", id)

	found, err := c.API.OrchestrationDetails(r.Context(), id)
	if err != nil {
		return result{}, err
	}

	query := operatorserver.Query{Values: url.Values{}, Page: operatorserver.Page{Size: targetsLength}}
	if state := r.URL.Query().Get("state"); state != "" {
		query.Set("state", state)
	}

	targets, err := c.API.TargetList(r.Context(), id, query)
	if err != nil {
		return result{}, err
	}

	state := environment.OrchestrationState(found.State)
	running := state == environment.OrchestrationPending || state == environment.OrchestrationInProgress || state == environment.OrchestrationRetrying
	shown := views.Orchestration{
		Orchestration: found, Targets: targets.Data, State: query.Get("state"), Parameters: indented(found.Parameters), Refused: refused,
		MayPause: running && state != environment.OrchestrationPending && c.may(r, pauseEndpoint), MayResume: state.Stopped() && c.may(r, resumeEndpoint),
		MayCancel: (running || state.Stopped() || state == environment.OrchestrationPlanned) && c.may(r, stopEndpoint),
		MayApply:  state == environment.OrchestrationPlanned && c.may(r, applyEndpoint),
		MayRetry:  orchestration.Retryable(state, found.OperationStats) && c.may(r, retryTargetsEndpoint),
		Now:       c.API.Clock.Now(),
	}

	if targets.TotalCount != nil {
		shown.Total = *targets.TotalCount
	}

	return result{page: views.Page{
		Title: "Orchestration of " + found.Type, Section: "/console/orchestrations", Live: live, Body: views.OrchestrationPage(shown),
	}}, nil
}

func (c *console) pause(r *http.Request) (result, error) {
	return c.changeOrchestration(r, c.API.HoldOrchestration)
}

func (c *console) resume(r *http.Request) (result, error) {
	return c.changeOrchestration(r, c.API.ContinueOrchestration)
}

func (c *console) stop(r *http.Request) (result, error) {
	return c.changeOrchestration(r, c.API.StopOrchestration)
}

func (c *console) apply(r *http.Request) (result, error) {
	return c.changeOrchestration(r, func(ctx context.Context, id string) error {
		_, err := c.API.ApplyPlan(ctx, id, false)

		return err
	})
}

// retryTargets retries all failed targets.
func (c *console) retryTargets(r *http.Request) (result, error) {
	return c.changeOrchestration(r, func(ctx context.Context, id string) error {
		_, err := c.API.RetryTargets(ctx, id, operatorapi.OrchestrationRetry{})

		return err
	})
}

// changeOrchestration changes an orchestration and then shows it. If the state of the orchestration does not permit the change
// (409), the page says why. changeOrchestration returns any other error.
func (c *console) changeOrchestration(r *http.Request, change func(ctx context.Context, id string) error) (result, error) {
	id, err := operatorserver.Segment(r, "orchestration_id")
	if err != nil {
		return result{}, err
	}

	err = change(r.Context(), id)
	if err == nil {
		return result{location: "/console/orchestrations/" + url.PathEscape(id)}, nil
	}

	if status := httpserver.RefusalOf(err).Status; status != http.StatusConflict {
		return result{}, err
	}

	shown, failed := c.showOrchestration(r, id, textOf(err))
	shown.status = http.StatusConflict

	return shown, failed
}

// systems shows the systems that the broker calls, as this replica sees them.
func (c *console) systems(r *http.Request) (result, error) {
	live := c.address(r, "", "")

	return result{page: views.Page{
		Title: "Systems", Section: "/console/systems", Live: live, Body: views.SystemsPage(c.API.StatusReport(), c.API.Clock.Now()),
	}}, nil
}

// catalog shows all plans, including plans that are not offered.
func (c *console) catalog(*http.Request) (result, error) {
	report := c.API.CatalogReport()
	shown := views.Catalog{Catalog: report, Now: c.API.Clock.Now()}

	for _, plan := range c.API.Catalog.Plans() {
		shown.Plans = append(shown.Plans, views.Plan{
			Name: plan.Name, ID: plan.ID, OrderPath: orderPath(plan.ID), Description: plan.Description, Version: plan.MaintenanceVersion(),
			Offered:       plan.Offered(),
			OnePerAccount: plan.OnePerAccount(), Regions: plan.Regions(),
		})
	}

	return result{page: views.Page{Title: "Catalog", Section: "/console/catalog", Body: views.CatalogPage(shown)}}, nil
}

// audit shows a page of the audit log. Its URL takes the same parameters as GET /audit.
func (c *console) audit(r *http.Request) (result, error) {
	query, values, err := c.readQuery(r, auditEndpoint)
	shown := views.Audit{Query: values, Now: c.API.Clock.Now()}

	if err == nil {
		var list operatorapi.AuditList

		list, err = c.API.AuditList(r.Context(), query)
		shown.List, shown.Pager = list.Data, pager("/console/audit", values, list.Page)
		shown.Pager.CountAll = "" // the log does not report a total
	}

	if shown.Problem, err = problem(err); err != nil {
		return result{}, err
	}

	return result{status: statusOf(shown.Problem), page: views.Page{Title: "Audit log", Section: "/console/audit", Body: views.AuditPage(shown)}}, nil
}

const auditEndpoint = "GET /audit"
