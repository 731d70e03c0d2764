package environment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"
)

// Change is what an update makes of an instance. Applied to an instance that has it already it changes nothing.
type Change struct {
	// PlanID, PlanName, MaintenanceVersion and GlobalAccountID are those that the instance has afterwards.
	PlanID             string `json:"planID"`
	PlanName           string `json:"planName"`
	MaintenanceVersion string `json:"maintenanceVersion,omitempty"`
	GlobalAccountID    string `json:"globalAccountID"`
	// Exclusive is what no other instance may have at the same time afterwards, or empty.
	Exclusive string `json:"exclusive,omitempty"`
	// ExpiresAt is when the instance expires afterwards, or zero.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// Parameters and Context hold the fields that the platform sent. The other ones of the instance stay.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Context    json.RawMessage `json:"context,omitempty"`
	// Cluster is the runtime afterwards.
	Cluster Cluster `json:"cluster"`
}

// NoChange returns the change that leaves the instance as it is.
func NoChange(instance Instance) Change {
	return Change{
		PlanID: instance.PlanID, PlanName: instance.PlanName, MaintenanceVersion: instance.MaintenanceVersion,
		GlobalAccountID: instance.GlobalAccountID, Exclusive: instance.Exclusive,
		ExpiresAt: instance.ExpiresAt, Cluster: instance.Request.Cluster,
	}
}

// Apply returns the instance with the change.
func (c Change) Apply(instance Instance) (Instance, error) {
	parameters, err := merged(instance.Request.Parameters, c.Parameters)
	if err != nil {
		return instance, fmt.Errorf("changing the parameters of instance %s: %w", instance.ID, err)
	}

	context, err := merged(instance.Request.Context, c.Context)
	if err != nil {
		return instance, fmt.Errorf("changing the context of instance %s: %w", instance.ID, err)
	}

	if instance.Request.Order == nil && (c.PlanID != instance.PlanID || !bytes.Equal(parameters, instance.Request.Parameters)) {
		instance.Request.Order = &Order{PlanID: instance.PlanID, Parameters: instance.Request.Parameters}
	}

	if c.GlobalAccountID != instance.GlobalAccountID && instance.SubscriptionAccountID == "" {
		instance.SubscriptionAccountID = instance.GlobalAccountID
	}

	instance.PlanID, instance.PlanName, instance.MaintenanceVersion = c.PlanID, c.PlanName, c.MaintenanceVersion
	instance.GlobalAccountID, instance.Exclusive = c.GlobalAccountID, c.Exclusive

	if !instance.Expired() { // it may have expired since the change was ordered
		instance.ExpiresAt = c.ExpiresAt
	}

	instance.Request.Parameters, instance.Request.Context = parameters, context
	instance.Request.Cluster = c.Cluster

	return instance, nil
}

// merged returns the object with the fields of the other one. Where these change nothing it is returned as it was written.
func merged(object, with json.RawMessage) (json.RawMessage, error) {
	fields, before, changes := map[string]any{}, map[string]any{}, map[string]any{}

	for _, each := range []struct {
		raw  json.RawMessage
		into *map[string]any
	}{{object, &fields}, {object, &before}, {with, &changes}} {
		if len(each.raw) == 0 {
			continue
		}

		decoder := json.NewDecoder(bytes.NewReader(each.raw))
		decoder.UseNumber() // a number stays as it was written

		if err := decoder.Decode(each.into); err != nil {
			return nil, fmt.Errorf("reading an object: %w", err)
		}
	}

	if fields == nil { // null
		fields = map[string]any{}
	}

	maps.Copy(fields, changes)

	if len(changes) == 0 || reflect.DeepEqual(fields, before) {
		return object, nil
	}

	encoded, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("writing an object: %w", err)
	}

	return encoded, nil
}
