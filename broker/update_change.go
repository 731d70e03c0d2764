package broker

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
)

// changeOf finds out what the wish makes of the instance, which has the target's plan afterwards, or why it cannot be.
func (a *api) changeOf(wish wish, instance environment.Instance, target *catalog.Plan) (environment.Update, error) {
	change := environment.UnchangedUpdate(instance)
	change.Parameters, change.Context = wish.parameters, wish.context

	if wish.account != "" && wish.account != instance.GlobalAccountID {
		if !a.AccountMovement {
			return change, unprocessable("", textNoMovement)
		}

		change.GlobalAccountID = wish.account
	}

	otherPlan := target.ID != instance.PlanID
	if otherPlan {
		change.PlanID, change.PlanName = target.ID, target.Name
		change.ExpiresAt = a.Periods.End(target.Name, instance.CreatedAt)
	}

	if otherPlan || change.GlobalAccountID != instance.GlobalAccountID {
		change.Exclusive = exclusive(target, change.GlobalAccountID)
	}

	if otherPlan || holds(wish.parameters) {
		var err error

		change.Cluster, err = target.Update(catalog.Change{Region: instance.Region, Current: change.Cluster, Parameters: wish.parameters})
		if err != nil {
			return change, err
		}
	}

	// The versions of another plan are not those of the former one.
	if otherPlan || wish.maintenance != nil {
		change.MaintenanceVersion = target.MaintenanceVersion()
		change.Cluster = target.Upgrade(change.Cluster)
	}

	return change, nil
}

// planAfter is the plan that the instance has afterwards.
func (a *api) planAfter(wish wish, instance environment.Instance) (*catalog.Plan, error) {
	target, err := a.Catalog.Plan(wish.serviceID, firstOf(wish.planID, instance.PlanID))
	if err != nil {
		return nil, err
	}

	if target.ID != instance.PlanID {
		present, err := a.Catalog.Plan(instance.ServiceID, instance.PlanID)
		if err != nil || !present.MayBecome(target) {
			return nil, unprocessable(codePlanChange, fmt.Sprintf(textPlanChange, instance.PlanName, target.Name))
		}
	}

	if wish.maintenance != nil && wish.maintenance.Version != target.MaintenanceVersion() {
		return nil, unprocessable(codeMaintenanceConflict, fmt.Sprintf(textMaintenance, target.MaintenanceVersion()))
	}

	return target, nil
}

// holds reports whether an object, which was read before, has any field.
func holds(object json.RawMessage) bool { return !sameObject(object, nil) }

// same reports whether two values are stored alike.
func same[Value any](one, other Value) bool {
	first, err := json.Marshal(one)
	if err != nil {
		return false
	}

	second, err := json.Marshal(other)

	return err == nil && bytes.Equal(first, second)
}
