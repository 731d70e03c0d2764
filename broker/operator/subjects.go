package operator

import (
	"context"
	"net/url"
	"time"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/operatorapi/operatorserver"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/storage"
	"github.com/environment-broker/environment-broker/storage/instances"
	"github.com/environment-broker/environment-broker/storage/operations"
)

// subjects implements operatorserver.Subjects: the subject of the broker's operations is an instance or one of its
// bindings.
type subjects struct{ instances *instances.Store }

// Noun returns "instance".
func (subjects) Noun() string { return "instance" }

// IDs returns the IDs of the instance and the binding of an operation. bindingID is empty for operations on instances.
func (subjects) IDs(record process.Record) (instanceID, bindingID string) {
	instanceID, bindingID, is := environment.BindingOf(record.InstanceID)
	if !is {
		instanceID = record.InstanceID
	}

	return instanceID, bindingID
}

// Names returns the display names of the instances.
func (s subjects) Names(ctx context.Context, ids []string) (map[string]string, error) {
	return s.instances.Names(ctx, ids)
}

// Lock locks the instance of an operation, or of the binding that the operation belongs to. It returns false if the
// instance does not exist.
func (s subjects) Lock(ctx context.Context, tx storage.Tx, record process.Record, now time.Time) (bool, error) {
	if instanceID, _, is := environment.BindingOf(record.InstanceID); is {
		return s.instances.Lock(ctx, tx, instanceID)
	}

	return s.instances.Touch(ctx, tx, record.InstanceID, now)
}

// Select adds the parameter binding_id to the filter. Operations on a binding are stored under a BindingKey in place of
// the instance ID.
func (subjects) Select(query url.Values, filter *operations.Filter) error {
	bindingID := query.Get("binding_id")
	if bindingID == "" {
		return nil
	}

	if filter.InstanceID == "" {
		return operatorserver.Invalid("binding_id requires instance_id.")
	}

	filter.InstanceID = environment.BindingKey(filter.InstanceID, bindingID)

	return nil
}
