package service

import (
	"context"
	"errors"
	"slices"

	"k8s.io/utils/clock"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
	"github.com/environment-broker/environment-broker/process/deprovisioning"
	"github.com/environment-broker/environment-broker/process/provisioning"
	"github.com/environment-broker/environment-broker/storage/outsideobjects"
)

// Objects gives the processes access to the records of objects in other systems. All errors carry a failure.Kind.
type Objects interface {
	provisioning.Objects
	deprovisioning.Objects
}

// objects implements Objects with the store.
type objects struct {
	store *outsideobjects.Store
	clock clock.PassiveClock
}

// NewObjects returns Objects that are backed by the store.
func NewObjects(store *outsideobjects.Store, clock clock.PassiveClock) Objects {
	return objects{store, clock}
}

// FindObject returns the recorded object of the given kind. If there is none, it returns an object without a state.
func (o objects) FindObject(ctx context.Context, instanceID, system, kind string) (environment.OutsideObject, error) {
	all, err := o.ObjectsIn(ctx, instanceID, system)
	for _, object := range all {
		if object.Kind == kind {
			return object, nil
		}
	}

	return environment.OutsideObject{InstanceID: instanceID, System: system, Kind: kind}, err
}

// ObjectsIn returns the recorded objects of the instance in the given system.
func (o objects) ObjectsIn(ctx context.Context, instanceID, system string) ([]environment.OutsideObject, error) {
	all, err := o.store.OfInstance(ctx, instanceID)

	return slices.DeleteFunc(all, func(object environment.OutsideObject) bool { return object.System != system }), explainObject(err)
}

// SetObject records the object. It fails if the operation has lost its lease.
func (o objects) SetObject(ctx context.Context, by process.Record, object environment.OutsideObject) error {
	return explainObject(o.store.Set(ctx, by, object, o.clock.Now()))
}

// RemoveObject removes the record of the object. It fails if the operation has lost its lease.
func (o objects) RemoveObject(ctx context.Context, by process.Record, object environment.OutsideObject) error {
	return explainObject(o.store.Remove(ctx, by, object))
}

// Sharing returns the records of other instances that name the same object.
func (o objects) Sharing(ctx context.Context, object environment.OutsideObject) ([]environment.OutsideObject, error) {
	shared, err := o.store.Sharing(ctx, object)

	return shared, explainObject(err)
}

// explainObject converts an error of the store. A lost lease is a transient error, because the replica that holds the lease runs
// the step.
func explainObject(err error) error {
	if errors.Is(err, process.ErrLeaseLost) {
		return failure.Wrap(failure.Transient, err, "another replica has taken over the operation")
	}

	return explain(err, "the objects of the instance in other systems")
}
