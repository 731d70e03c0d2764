package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/environment-broker/environment-broker/broker/catalog"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/storage"
)

// resolution is the result of Plan.Update: the cluster with the parameters of an update, or the error that lists the
// violations. It is computed before the transaction that decides on the update. It is valid for the plan, and for
// instances that have the same values in all relevant fields.
type resolution struct {
	plan *catalog.Plan
	// instance contains only the fields that the result depends on.
	instance environment.Instance

	updated catalog.Updated
	err     error
}

// unresolvedError rolls back the transaction of an update that needs a resolution for the given plan and instance. It matches
// errLostRace, so that retryLostRace repeats the attempt, which then computes the resolution.
type unresolvedError struct {
	plan     *catalog.Plan
	instance environment.Instance
}

// Error implements error.
func (*unresolvedError) Error() string {
	return "the parameters were checked against another state of the instance"
}

// Is reports whether the target is errLostRace, so that errors.Is matches it.
func (*unresolvedError) Is(target error) bool { return target == errLostRace }

// resolve checks the parameters of an update and applies them to the cluster of the instance.
func resolve(plan *catalog.Plan, instance environment.Instance, parameters json.RawMessage) *resolution {
	resolved := &resolution{plan: plan, instance: relevant(instance)}
	resolved.updated, resolved.err = plan.Update(resolved.instance, parameters)

	return resolved
}

// relevant returns the instance with only the fields that Plan.Update reads.
func relevant(instance environment.Instance) environment.Instance {
	return environment.Instance{
		Name: instance.Name, Provider: instance.Provider, Region: instance.Region, DeletionProtection: instance.DeletionProtection,
		Request: environment.Request{Cluster: instance.Request.Cluster, Parameters: instance.Request.Parameters},
	}
}

// concerns reports whether the resolution is valid for the plan and the instance.
func (r *resolution) concerns(plan *catalog.Plan, instance environment.Instance) bool {
	return r != nil && r.plan == plan && reflect.DeepEqual(r.instance, relevant(instance))
}

// resolveEarly sets request.resolution for the current state of the instance. The field stays nil if the request changes neither
// the plan nor the parameters. It also stays nil if the instance does not exist or the target plan is unknown: decideUpdate
// reports these two errors.
func (a *api) resolveEarly(ctx context.Context, request *updateRequest) error {
	if !request.hasParameters && request.planID == "" {
		return nil
	}

	id, err := a.lookupID(ctx, a.DB.Reader(), request.instanceID)
	if err != nil {
		return err
	}

	instance, err := a.Instances.Get(ctx, a.DB.Reader(), id)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	target, err := a.Catalog.Plan(request.serviceID, cmp.Or(request.planID, instance.PlanID))
	if err == nil && (request.hasParameters || target.ID != instance.PlanID) {
		request.resolution = resolve(target, instance, request.parameters)
	}

	return nil
}
