package environment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/environment-broker/environment-broker/internal/failure"
)

// Update contains the changes to an instance. Applying it twice has the same effect as applying it once, so a step can apply it
// again after a crash. Its JSON form is stored with operations. Fields that the update does not change have the values of the
// instance that the operation was accepted for; Data.ForRetry replaces those that have changed since.
type Update struct {
	// PlanID, PlanName, MaintenanceVersion and GlobalAccountID are the values after the update.
	PlanID             string `json:"planID"`
	PlanName           string `json:"planName"`
	MaintenanceVersion string `json:"maintenanceVersion,omitempty"`
	GlobalAccountID    string `json:"globalAccountID"`
	// Exclusive is Instance.Exclusive after the update.
	Exclusive string `json:"exclusive,omitempty"`
	// ExpiresAt is Instance.ExpiresAt after the update.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	// DeletionProtection is Instance.DeletionProtection after the update. Nil keeps the value that the instance has when the update is applied.
	DeletionProtection *bool `json:"deletionProtection,omitempty"`
	// Parameters and Context contain the fields that the platform's request sets. Apply merges them into the stored parameters
	// and context.
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Context    json.RawMessage `json:"context,omitempty"`
	// Cluster is the runtime after the update.
	Cluster Cluster `json:"cluster"`
}

// UnchangedUpdate returns an update that changes nothing.
func UnchangedUpdate(instance Instance) Update {
	return Update{
		PlanID: instance.PlanID, PlanName: instance.PlanName, MaintenanceVersion: instance.MaintenanceVersion,
		GlobalAccountID: instance.GlobalAccountID, Exclusive: instance.Exclusive,
		ExpiresAt: instance.ExpiresAt, Cluster: instance.Request.Cluster,
	}
}

// Changed returns the instance as it will be after the operation. Data.Update must not be nil.
func (d Data) Changed() (Instance, error) {
	changed, err := d.Update.Apply(d.Instance)
	if err != nil {
		return changed, failure.Wrap(failure.Internal, err, "the update of instance %s cannot be applied", d.Instance.ID)
	}

	return changed, nil
}

// Apply returns the updated instance. It merges parameters and context field by field. It records the original order and tenant
// when an update changes them for the first time, and does not change the expiry of an expired instance. If the stored or the new
// JSON is malformed, it returns an error and the unchanged instance.
func (u Update) Apply(instance Instance) (Instance, error) {
	parameters, err := merged(instance.Request.Parameters, u.Parameters)
	if err != nil {
		return instance, fmt.Errorf("updating the parameters of instance %s: %w", instance.ID, err)
	}

	context, err := merged(instance.Request.Context, u.Context)
	if err != nil {
		return instance, fmt.Errorf("updating the context of instance %s: %w", instance.ID, err)
	}

	if instance.Request.Initial == nil && (u.PlanID != instance.PlanID || !bytes.Equal(parameters, instance.Request.Parameters)) {
		instance.Request.Initial = &InitialOrder{PlanID: instance.PlanID, Parameters: instance.Request.Parameters}
	}

	if u.GlobalAccountID != instance.GlobalAccountID && instance.SubscriptionAccountID == "" {
		instance.SubscriptionAccountID = instance.GlobalAccountID
	}

	instance.PlanID, instance.PlanName, instance.MaintenanceVersion = u.PlanID, u.PlanName, u.MaintenanceVersion
	instance.GlobalAccountID, instance.Exclusive = u.GlobalAccountID, u.Exclusive

	if !instance.Expired() { // the instance may have expired after the update was accepted
		instance.ExpiresAt = u.ExpiresAt
	}

	if u.DeletionProtection != nil {
		instance.DeletionProtection = *u.DeletionProtection
	}

	instance.Request.Parameters, instance.Request.Context = parameters, context
	instance.Request.Cluster = u.Cluster

	return instance, nil
}

// merged returns object with the fields of updates added or replaced. If the fields already have these values, merged returns
// object itself, byte for byte, so that callers can compare bytes to detect an update without effect.
func merged(object, updates json.RawMessage) (json.RawMessage, error) {
	before, err := fieldsOf(object)
	if err != nil {
		return nil, err
	}

	changes, err := fieldsOf(updates)
	if err != nil {
		return nil, err
	}

	fields := maps.Clone(before)
	maps.Copy(fields, changes)

	if len(changes) == 0 || reflect.DeepEqual(fields, before) {
		return object, nil
	}

	encoded, err := json.Marshal(fields)

	return encoded, failure.While(err, "encoding an object")
}

// fieldsOf decodes an object. The result is empty, but not nil, if the object is empty or null.
func fieldsOf(object json.RawMessage) (map[string]any, error) {
	fields := map[string]any{}
	if len(object) == 0 {
		return fields, nil
	}

	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber() // keeps large numbers exact

	if err := decoder.Decode(&fields); err != nil {
		return nil, fmt.Errorf("decoding an object: %w", err)
	}

	if fields == nil { // null
		fields = map[string]any{}
	}

	return fields, nil
}
