// Package stepstest contains helpers for tests of steps: in-memory records of objects in other systems, and a loop that runs the
// steps of a process.
package stepstest

import (
	"context"
	"slices"
	"strings"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// Objects holds the records of all instances. It implements the Objects interfaces of the processes. It is not safe for
// concurrent use.
type Objects struct {
	Records []environment.OutsideObject
	// Lost makes all writes fail, as if the replica had lost its lease.
	Lost bool
	// Writes counts the writes. If it reaches Broken, that write fails.
	Writes, Broken int
}

// New returns Objects that contain the records.
func New(records ...environment.OutsideObject) *Objects { return &Objects{Records: records} }

// FindObject returns the recorded object of the instance, or an object with an empty state if none is recorded.
func (o *Objects) FindObject(_ context.Context, instanceID, system, kind string) (environment.OutsideObject, error) {
	wanted := environment.OutsideObject{InstanceID: instanceID, System: system, Kind: kind}
	if at := o.index(wanted); at >= 0 {
		return o.Records[at], nil
	}

	return wanted, nil
}

// ObjectsIn returns the objects of the instance in the system, sorted by kind.
func (o *Objects) ObjectsIn(_ context.Context, instanceID, system string) ([]environment.OutsideObject, error) {
	return o.where(func(object environment.OutsideObject) bool {
		return object.InstanceID == instanceID && object.System == system
	}), nil
}

// Sharing returns the records of other instances that name the same object.
func (o *Objects) Sharing(_ context.Context, object environment.OutsideObject) ([]environment.OutsideObject, error) {
	return o.where(func(other environment.OutsideObject) bool {
		return other.InstanceID != object.InstanceID && other.System == object.System && other.Kind == object.Kind && other.Key == object.Key
	}), nil
}

// SetObject adds or replaces the record.
func (o *Objects) SetObject(_ context.Context, _ process.Record, object environment.OutsideObject) error {
	if err := o.write(); err != nil {
		return err
	}

	if at := o.index(object); at >= 0 {
		o.Records[at] = object
	} else {
		o.Records = append(o.Records, object)
	}

	return nil
}

// RemoveObject removes the record. A missing record is not an error.
func (o *Objects) RemoveObject(_ context.Context, _ process.Record, object environment.OutsideObject) error {
	if err := o.write(); err != nil {
		return err
	}

	o.Records = slices.DeleteFunc(o.Records, func(other environment.OutsideObject) bool { return same(object, other) })

	return nil
}

// Of returns the first record of the given kind, or an empty record.
func (o *Objects) Of(kind string) environment.OutsideObject {
	for _, object := range o.Records {
		if object.Kind == kind {
			return object
		}
	}

	return environment.OutsideObject{}
}

// Lines returns the records as sorted lines of the form "kind: state key".
func (o *Objects) Lines() []string {
	var lines []string
	for _, object := range o.Records {
		lines = append(lines, strings.TrimSpace(object.Kind+": "+string(object.State)+" "+object.Key))
	}

	slices.Sort(lines)

	return lines
}

// write counts a write and returns an error if the write must fail.
func (o *Objects) write() error {
	if o.Writes++; o.Lost || o.Writes == o.Broken {
		return failure.New(failure.Transient, "another replica has taken over the operation")
	}

	return nil
}

// where returns the records that match, sorted by kind.
func (o *Objects) where(matches func(object environment.OutsideObject) bool) []environment.OutsideObject {
	var found []environment.OutsideObject

	for _, object := range o.Records {
		if matches(object) {
			found = append(found, object)
		}
	}

	slices.SortFunc(found, func(one, other environment.OutsideObject) int { return strings.Compare(one.Kind, other.Kind) })

	return found
}

// index returns the position of the object's record, or -1.
func (o *Objects) index(object environment.OutsideObject) int {
	return slices.IndexFunc(o.Records, func(other environment.OutsideObject) bool { return same(object, other) })
}

// same reports whether one and other are records of the same object of the same instance.
func same(one, other environment.OutsideObject) bool {
	return one.InstanceID == other.InstanceID && one.System == other.System && one.Kind == other.Kind
}
