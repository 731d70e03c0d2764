package broker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/storage"
)

// updateRequest is the platform's request. Empty fields leave the instance as it is.
type updateRequest struct {
	instanceID string
	// serviceID is required. planID is the plan after the update.
	serviceID, planID string
	// context and parameters are merged into those of the instance, field by field.
	context    json.RawMessage
	parameters json.RawMessage
	// maintenanceVersion asks for maintenance if it is set.
	maintenanceVersion string
	// active comes from the context: false suspends the instance, true resumes it.
	active *bool
	// account is the global account in the context.
	account           string
	acceptsIncomplete bool
}

// asks reports whether the request asks for a suspension (active is false) or a resumption (true).
func (u updateRequest) asks(active bool) bool { return u.active != nil && *u.active == active }

// update answers PATCH /v2/service_instances/{instance_id}: 202 with an operation if the runtime has to change,
// 200 if changing the row is enough or the update changes nothing. Suspension and resumption are updates of the
// field active in the context.
func (a *api) update(r request) (httpserver.Response, error) {
	request, err := readUpdateRequest(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	result, err := decide(r.Context(), a, func(tx storage.Tx) (outcome, error) { return a.decideUpdate(r.Context(), tx, request) })
	if err != nil {
		return httpserver.Response{}, err
	}

	a.started(r.Context(), result)

	if result.operation == "" {
		return httpserver.OK(struct{}{}), nil
	}

	return httpserver.Response{
		Status: http.StatusAccepted, Body: apiresponses.UpdateResponse{OperationData: result.operation},
	}, nil
}

// readUpdateRequest reads the request. previous_values must be an object, whose fields are ignored: the broker
// knows the instance better than the platform.
func readUpdateRequest(r request) (updateRequest, error) {
	sent := r.body
	context := sent.inner("context")
	request := updateRequest{
		instanceID:         r.instanceID,
		serviceID:          sent.required("service_id"),
		planID:             sent.optional("plan_id"),
		context:            sent.object("context"),
		parameters:         sent.object("parameters"),
		maintenanceVersion: sent.maintenanceVersion(),
		active:             context.flag("active"),
		account:            context.label("globalaccount_id"),
		acceptsIncomplete:  r.acceptsIncomplete(),
	}

	sent.object("previous_values")
	sent.keep(context.err)

	return request, sent.err
}

// repeatable adds to the errors of the endpoint whether the same update may succeed later.
func repeatable(endpoint httpserver.Endpoint) httpserver.Endpoint {
	return func(r *http.Request) (httpserver.Response, error) {
		response, err := endpoint(r)
		if err == nil {
			return response, nil
		}

		refusal := *httpserver.RefusalOf(err)
		refusal.UpdateRepeatable = new(refusal.Status >= http.StatusInternalServerError || refusal.Code == codeConcurrency)

		return response, &refusal
	}
}

// targetPlan returns the plan of the instance after the update. The error reports an unknown plan, a change
// that the current plan does not allow, or a maintenance version other than that of the plan in the catalog.
func (a *api) targetPlan(request updateRequest, instance environment.Instance) (*catalog.Plan, error) {
	target, err := a.Catalog.Plan(request.serviceID, cmp.Or(request.planID, instance.PlanID))
	if err != nil {
		return nil, err
	}

	if target.ID != instance.PlanID {
		current, err := a.Catalog.Plan(instance.ServiceID, instance.PlanID)
		if err != nil || !current.MayBecome(target) {
			return nil, unprocessable(codePlanChange, fmt.Sprintf(textPlanChange, instance.PlanName, target.Name))
		}
	}

	if request.maintenanceVersion != "" && request.maintenanceVersion != target.MaintenanceVersion() {
		return nil, unprocessable(codeMaintenanceConflict, fmt.Sprintf(textMaintenance, target.MaintenanceVersion()))
	}

	return target, nil
}

// resolveUpdate returns the changes that the request makes to the instance, whose plan becomes the target. It
// reads nothing from the database, so it can also be asked about the instance as a running operation will leave
// it.
func (a *api) resolveUpdate(request updateRequest, instance environment.Instance, target *catalog.Plan) (environment.Update, error) {
	update := environment.UnchangedUpdate(instance)
	update.Parameters, update.Context = request.parameters, request.context

	if request.account != "" && request.account != instance.GlobalAccountID {
		if !a.AccountMovement {
			return update, unprocessable("", textNoMovement)
		}

		update.GlobalAccountID = request.account
	}

	otherPlan := target.ID != instance.PlanID
	if otherPlan {
		update.PlanID, update.PlanName = target.ID, target.Name
		update.ExpiresAt = a.Periods.End(target.Name, instance.CreatedAt)
	}

	if otherPlan || update.GlobalAccountID != instance.GlobalAccountID {
		update.Exclusive = exclusive(target, update.GlobalAccountID)
	}

	if otherPlan || !isEmpty(request.parameters) {
		var err error
		if update.Cluster, update.Parameters, err = target.Update(instance, request.parameters); err != nil {
			return update, err
		}
	}

	// Versions of different plans are unrelated, so a plan change includes maintenance.
	if otherPlan || request.maintenanceVersion != "" {
		update.MaintenanceVersion = target.MaintenanceVersion()
		update.Cluster = target.Upgrade(update.Cluster)
	}

	return update, nil
}
