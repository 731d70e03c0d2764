package broker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/pivotal-cf/brokerapi/v10/domain/apiresponses"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/httpserver"
	"github.com/environment-broker/environment-broker/storage"
)

// updateRequest is an update that a platform requests. Empty fields leave the instance unchanged.
type updateRequest struct {
	instanceID string
	// serviceID is required. planID is the plan after the update, or empty to keep the plan.
	serviceID, planID string
	// context and parameters are merged into the instance's, field by field.
	context    json.RawMessage
	parameters json.RawMessage
	// hasParameters reports whether the parameters object has any fields.
	hasParameters bool
	// resolution is the result of the last check of the parameters, or nil.
	resolution *resolution
	// maintenanceVersion requests maintenance unless it is empty.
	maintenanceVersion string
	// active is a field of the context: false suspends the instance, true resumes it.
	active *bool
	// account is the global account in the context, or empty.
	account string
	// serviceManager contains the credentials in the context, or is nil.
	serviceManager    *environment.ServiceManager
	acceptsIncomplete bool
	// caller is the platform that requests the update.
	caller caller
}

// asks reports whether the request sets active to the given value: asks(false) is true for a suspension, asks(true) for a
// resumption.
func (u updateRequest) asks(active bool) bool { return u.active != nil && *u.active == active }

// update handles PATCH /v2/service_instances/{instance_id}. The response is 202 with an operation if the runtime
// has to change, and otherwise 200. An update whose context contains the active field suspends or resumes the
// instance.
func (a *api) update(r request) (httpserver.Response, error) {
	request, err := readUpdateRequest(r)
	if err != nil {
		return httpserver.Response{}, err
	}

	if err := a.resolveEarly(r.Context(), &request); err != nil {
		return httpserver.Response{}, err
	}

	result, err := retryLostRace(func() (outcome, error) {
		result, err := inTx(r.Context(), a, func(tx storage.Tx) (outcome, error) { return a.decideUpdate(r.Context(), tx, request) })
		if other, ok := errors.AsType[*unresolvedError](err); ok {
			request.resolution = resolve(other.plan, other.instance, request.parameters)
		}

		return result, err
	})
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

// readUpdateRequest reads the request. If previous_values is present, it must be an object, but its fields are
// ignored: the stored instance is more reliable.
func readUpdateRequest(r request) (updateRequest, error) {
	sent := r.body
	context := sent.inner("context")
	request := updateRequest{
		instanceID:         r.instanceID,
		serviceID:          sent.required("service_id"),
		planID:             sent.optional("plan_id"),
		context:            sent.context(),
		parameters:         sent.object("parameters"),
		maintenanceVersion: sent.maintenanceVersion(),
		active:             context.flag("active"),
		account:            context.label("globalaccount_id"),
		serviceManager:     context.serviceManager(),
		acceptsIncomplete:  r.acceptsIncomplete(),
		caller:             callerOf(r.Context()),
	}

	request.hasParameters = !isEmpty(request.parameters)

	sent.object("previous_values")
	sent.keep(context.err)

	return request, sent.err
}

// repeatable adds the update_repeatable field to the endpoint's error responses. The field is true if the same update can
// succeed later.
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

// targetPlan returns the plan of the instance after the update. It returns an error if the plan is unknown, if the current plan
// cannot be changed to it, or if the requested maintenance version differs from the plan's version.
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

// resolveUpdate returns the changes that the request makes to the instance, given the target plan. It does not read the database,
// so the instance can also be the predicted result of a running operation. If the request needs a resolution, and
// request.resolution is nil or belongs to another plan or another state of the instance, the error is an unresolvedError.
func (a *api) resolveUpdate(request updateRequest, instance environment.Instance, target *catalog.Plan) (environment.Update, error) {
	update := environment.UnchangedUpdate(instance)
	update.Parameters, update.Context = request.parameters, request.context

	if request.account != "" && request.account != instance.GlobalAccountID {
		switch {
		case !a.AccountMovement:
			return update, unprocessable("", textNoMovement)
		case request.caller.Name != instance.Platform:
			return update, unprocessable("", textSharedMovement)
		case !request.caller.AllowsTenant(request.account):
			return update, forbidden(textOtherTenant)
		}

		update.GlobalAccountID = request.account
	}

	otherPlan := target.ID != instance.PlanID
	if otherPlan {
		update.PlanID, update.PlanName = target.ID, target.Name
		update.ExpiresAt = a.Periods.End(target.Name, instance.CreatedAt)
	}

	if otherPlan || update.GlobalAccountID != instance.GlobalAccountID {
		update.Exclusive = target.Exclusive(update.GlobalAccountID)
	}

	if otherPlan || request.hasParameters {
		resolved := request.resolution
		if !resolved.concerns(target, instance) {
			return update, &unresolvedError{plan: target, instance: instance}
		}

		if resolved.err != nil {
			return update, resolved.err
		}

		update.Cluster, update.Parameters = resolved.updated.Cluster, resolved.updated.Parameters
		update.DeletionProtection = resolved.updated.DeletionProtection
	}

	// Platforms repeat the credentials in each context or omit them. After a rotation, they send the new ones.
	if request.serviceManager != nil {
		update.Cluster.ServiceManager = request.serviceManager
	}

	// Versions of different plans are unrelated, so a plan change includes maintenance.
	if otherPlan || request.maintenanceVersion != "" {
		update.MaintenanceVersion = target.MaintenanceVersion()
		update.Cluster = target.Upgrade(update.Cluster)
	}

	return update, nil
}
