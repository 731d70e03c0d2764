package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/environment-broker/environment-broker/broker/console/views"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/internal/logging"
	"github.com/environment-broker/environment-broker/internal/operatorapi"
	"github.com/environment-broker/environment-broker/internal/operatorapi/explain"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
)

// The operator API endpoints for interventions.
const (
	cancelEndpoint = "POST /operations/{operation_id}/cancel"
	retryEndpoint  = "POST /operations/{operation_id}/retry"
	skipEndpoint   = "POST /operations/{operation_id}/skip"
)

// operations shows a page of the operation list. Its URL takes the same parameters as GET /operations.
func (c *console) operations(r *http.Request) (result, error) {
	live := c.address(r, "", "")

	query, values, err := c.readQuery(r, operationsEndpoint)

	shown := views.Operations{Query: values, States: operatorserver.OperationStates(), Kinds: environment.Kinds(), Now: c.API.Clock.Now()}

	if err == nil {
		var list operatorapi.OperationList

		list, err = c.operationLists.get(r, values.Encode(), c.Live.Position, func() (operatorapi.OperationList, error) {
			return c.API.OperationList(r.Context(), query)
		})
		shown.List, shown.Pager = list.Data, pager("/console/operations", values, list.Page)
	}

	if shown.Problem, err = problem(err); err != nil {
		return result{}, err
	}

	return result{status: statusOf(shown.Problem), page: views.Page{
		Title: "Operations", Section: "/console/operations", Live: live, Body: views.OperationsPage(shown),
	}}, nil
}

func (c *console) operation(r *http.Request) (result, error) {
	id, err := operatorserver.Segment(r, "operation_id")
	if err != nil {
		return result{}, err
	}

	return c.showOperation(r, id, views.Operation{})
}

// showOperation shows the page of an operation. After a rejected intervention, shown contains the error message and the reason that
// the user entered. Otherwise, shown is zero.
func (c *console) showOperation(r *http.Request, id string, shown views.Operation) (result, error) {
	live := c.address(r, "operation", id)

	httpserver.Note(r.Context(), logging.OperationID, id)

	operation, err := c.API.OperationDetails(r.Context(), id)
	if err != nil {
		return result{}, err
	}

	shown.Operation, shown.Now = operation, c.API.Clock.Now()
	explained := explain.Of(operation, shown.Now)
	shown.Summary, shown.Advice, shown.Left, shown.Continues = explained.Summary, explained.Advice, explained.Left(), explained.Continues()
	shown.SystemText, shown.Why, shown.GivesUp = explained.SystemText(), operation.Why, explained.GivesUp()
	shown.Stages = views.Stages(operation, c.steps(operation.Kind))

	c.offer(r, &shown)

	title := operation.Kind
	if operation.InstanceName != "" { // deleted instances and orchestrations have no name
		title += " of " + operation.InstanceName
	}

	return result{page: views.Page{
		Title: title, Section: "/console/operations", Live: live, Body: views.OperationPage(shown),
	}}, nil
}

// offer sets the interventions that the page offers: those that the state of the operation and the role of the client allow. If only
// the role is missing, it sets Needs to the required role.
func (c *console) offer(r *http.Request, shown *views.Operation) {
	state := shown.State
	ended := state == operatorapi.OperationStateFailed || state == operatorapi.OperationStateCanceled
	conductor := shown.Kind == environment.KindOrchestrate

	shown.MayCancel = !conductor && (state == operatorapi.OperationStatePending || state == operatorapi.OperationStateInProgress)
	shown.MayRetry = ended && shown.LaterOperationID == "" && environment.Retryable(shown.Kind)
	shown.MaySkip = shown.Skippable && state == operatorapi.OperationStateInProgress

	if (shown.MayCancel || shown.MayRetry || shown.MaySkip) && !c.may(r, cancelEndpoint) {
		shown.Needs = string(c.role(cancelEndpoint))
	}

	shown.MayCancel = shown.MayCancel && c.may(r, cancelEndpoint)
	shown.MayRetry = shown.MayRetry && c.may(r, retryEndpoint)
	shown.MaySkip = shown.MaySkip && c.may(r, skipEndpoint)
}

// steps returns the step names of the given operation kind, grouped by stage. It omits steps that the configuration turns off.
func (c *console) steps(kind string) map[string][]string {
	steps := map[string][]string{}

	for _, described := range c.API.Processes {
		for _, step := range described.Steps {
			if described.Kind == kind && !step.Off {
				steps[step.Stage] = append(steps[step.Stage], step.Step)
			}
		}
	}

	return steps
}

// intervention is a method of the operator API that changes an operation.
type intervention func(ctx context.Context, operationID string, wanted operatorapi.Intervention) (operatorapi.Operation, error)

func (c *console) cancel(r *http.Request) (result, error) { return c.intervene(r, c.API.Cancel) }
func (c *console) retry(r *http.Request) (result, error)  { return c.intervene(r, c.API.Retry) }
func (c *console) skip(r *http.Request) (result, error)   { return c.intervene(r, c.API.Skip) }

// intervene carries out an intervention with the reason in the form, and shows the resulting operation. If the intervention is
// rejected with 400 or 409, the page of the operation has the same status and says why. intervene returns any other error.
func (c *console) intervene(r *http.Request, do intervention) (result, error) {
	id, err := operatorserver.Segment(r, "operation_id")
	if err != nil {
		return result{}, err
	}

	form, err := readForm(r)
	if err != nil {
		return result{}, err
	}

	wanted := operatorapi.Intervention{Reason: form.Get("reason"), Step: form.Get("step")}

	changed, err := do(r.Context(), id, wanted)
	if err == nil {
		return result{location: operationPath(changed.ID)}, nil
	}

	status := httpserver.RefusalOf(err).Status
	if status != http.StatusBadRequest && status != http.StatusConflict {
		return result{}, err
	}

	shown, failed := c.showOperation(r, id, views.Operation{Refused: textOf(err), Reason: wanted.Reason})
	shown.status = status

	return shown, failed
}

// readForm returns the fields of the submitted form. The size of the request body has already been limited.
func readForm(r *http.Request) (url.Values, error) {
	if err := r.ParseForm(); err != nil {
		return nil, &httpserver.Refusal{Status: http.StatusBadRequest, Description: "The form cannot be read.", Cause: err}
	}

	return r.PostForm, nil
}

func operationPath(id string) string { return "/console/operations/" + url.PathEscape(id) }
