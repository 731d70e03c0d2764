package environment

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/environment-broker/environment-broker/internal/failure"
)

const (
	textPlanChanged = "The plan of the instance has changed since this operation was accepted. Order the change again instead of retrying the operation."
	textMoved       = "The instance has moved to another account since this operation was accepted, and plan %s allows one instance per account. " +
		"Order the change of the plan again instead of retrying the operation."
)

// ForRetry returns the data for a retry of the operation. present is the instance's row, which may have changed since the operation
// was accepted: a change of the account or the context needs no operation. Update has complete values, with which the retry would
// undo such later changes. Therefore, ForRetry replaces the values that have changed since, both in Update and in Instance. The
// parameters of the operation apply.
//
// The error is of kind failure.Conflict if the instance has another plan now, or if it has moved to another account and Update
// changes it to a plan that allows one instance per account. The operation was not checked against this plan or account.
func (d Data) ForRetry(present Instance) (Data, error) {
	if d.Update == nil {
		return d, nil
	}

	known, update := d.Instance, *d.Update
	otherPlan, moved := update.PlanID != known.PlanID, present.GlobalAccountID != known.GlobalAccountID

	switch {
	case present.PlanID != known.PlanID:
		return d, failure.New(failure.Conflict, textPlanChanged)
	case moved && otherPlan && update.Exclusive != "":
		return d, failure.New(failure.Conflict, textMoved, update.PlanName)
	}

	var err error
	if update.Context, err = unchangedSince(update.Context, known.Request.Context, present.Request.Context); err != nil {
		return d, fmt.Errorf("comparing the contexts of instance %s: %w", present.ID, err)
	}

	if moved {
		update.GlobalAccountID = present.GlobalAccountID
	}

	if moved && !otherPlan {
		update.Exclusive = present.Exclusive
	}

	// A change of the plan also sets the maintenance version and the expiry.
	if !otherPlan && present.MaintenanceVersion != known.MaintenanceVersion {
		update.MaintenanceVersion = present.MaintenanceVersion
	}

	if !otherPlan {
		update.ExpiresAt = present.ExpiresAt
	}

	if !reflect.DeepEqual(present.Request.Cluster.ServiceManager, known.Request.Cluster.ServiceManager) {
		update.Cluster.ServiceManager = present.Request.Cluster.ServiceManager
	}

	// A retry of the retry compares the row with these values.
	known.GlobalAccountID, known.SubscriptionAccountID = present.GlobalAccountID, present.SubscriptionAccountID
	known.Exclusive, known.MaintenanceVersion, known.ExpiresAt = present.Exclusive, present.MaintenanceVersion, present.ExpiresAt
	known.Request.Context, known.Request.Cluster.ServiceManager = present.Request.Context, present.Request.Cluster.ServiceManager
	d.Instance, d.Update = known, &update

	return d, nil
}

// unchangedSince returns the object updates without the fields whose values differ between the objects before and after.
func unchangedSince(updates, before, after json.RawMessage) (json.RawMessage, error) {
	fields, err := fieldsOf(updates)
	if err != nil {
		return nil, err
	}

	former, err := fieldsOf(before)
	if err != nil {
		return nil, err
	}

	present, err := fieldsOf(after)
	if err != nil {
		return nil, err
	}

	count := len(fields)
	maps.DeleteFunc(fields, func(name string, _ any) bool { return !reflect.DeepEqual(former[name], present[name]) })

	if len(fields) == count {
		return updates, nil
	}

	encoded, err := json.Marshal(fields)

	return encoded, failure.While(err, "encoding an object")
}
