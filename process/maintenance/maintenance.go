package maintenance

import (
	"context"

	"github.com/environment-broker/environment-broker/internal/clients/avs"
	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/failure"
	"github.com/environment-broker/environment-broker/process"
)

// AvS reads evaluations and sets their states. Both calls are idempotent.
type AvS interface {
	Find(ctx context.Context, id string) (avs.Evaluation, error)
	SetLifecycle(ctx context.Context, id string, lifecycle avs.Lifecycle) error
}

// Objects records the objects of instances in other systems. Writes fail if the operation has lost its lease. Errors carry a
// failure.Kind.
type Objects interface {
	// ObjectsIn returns the objects of the instance in the system.
	ObjectsIn(ctx context.Context, instanceID, system string) ([]environment.OutsideObject, error)
	SetObject(ctx context.Context, by process.Record, object environment.OutsideObject) error
	RemoveObject(ctx context.Context, by process.Record, object environment.OutsideObject) error
}

// Maintenance puts the evaluations of instances into maintenance. Its errors carry a failure.Kind; after an error, the caller
// repeats the call.
type Maintenance struct {
	// AvS is nil if the availability service is turned off.
	AvS     AvS
	Objects Objects
}

// Begin puts the evaluations of the operation's instance into maintenance. It first records their states, so that End can restore
// them in another operation or replica. If an evaluation is in maintenance without a record, somebody else has put it there, and
// Begin ignores it.
func (m Maintenance) Begin(ctx context.Context, by process.Record) error {
	if m.AvS == nil {
		return nil
	}

	objects, err := m.objects(ctx, by)
	if err != nil {
		return err
	}

	for _, kind := range kinds() {
		evaluation, mark := objects[kind], objects[environment.KindMaintenance(kind)]
		if evaluation.State != environment.OutsideCreated || mark.State == environment.OutsideCreated {
			continue
		}

		if err := m.begin(ctx, by, evaluation, mark); err != nil {
			return err
		}
	}

	return nil
}

func (m Maintenance) begin(ctx context.Context, by process.Record, evaluation, mark environment.OutsideObject) error {
	if mark.State == "" {
		found, err := m.AvS.Find(ctx, evaluation.Key)
		if failure.Is(err, failure.NotFound) || err == nil && found.Status == avs.Maintenance {
			return nil
		}

		if err != nil {
			return err
		}

		mark = environment.OutsideObject{
			InstanceID: by.InstanceID, System: environment.SystemAvS, Kind: environment.KindMaintenance(evaluation.Kind),
			Key: string(found.Status), State: environment.OutsideCreating,
		}
		if err := m.Objects.SetObject(ctx, by, mark); err != nil {
			return err
		}
	}

	err := m.AvS.SetLifecycle(ctx, evaluation.Key, avs.Maintenance)
	if failure.Is(err, failure.NotFound) {
		return m.Objects.RemoveObject(ctx, by, mark)
	}

	if err != nil {
		return err
	}

	mark.State = environment.OutsideCreated

	return m.Objects.SetObject(ctx, by, mark)
}

// End restores the states that Begin has recorded. If there are none, it does nothing.
func (m Maintenance) End(ctx context.Context, by process.Record) error {
	objects, err := m.objects(ctx, by)
	if err != nil {
		return err
	}

	for _, kind := range kinds() {
		mark, marked := objects[environment.KindMaintenance(kind)]
		if !marked {
			continue
		}

		if err := m.restore(ctx, objects[kind].Key, avs.Lifecycle(mark.Key)); err != nil {
			return err
		}

		if err := m.Objects.RemoveObject(ctx, by, mark); err != nil {
			return err
		}
	}

	return nil
}

// restore sets the state that the evaluation had before, or active if that state is unknown.
func (m Maintenance) restore(ctx context.Context, id string, former avs.Lifecycle) error {
	if id == "" { // the evaluation has been removed
		return nil
	}

	if m.AvS == nil {
		return failure.New(failure.Permanent, "AvS is turned off: an operator must set APP_AVS_API_ENDPOINT").
			WithReason(failure.ReasonInternal, failure.ComponentAvS)
	}

	if !former.Known() {
		former = avs.Active
	}

	err := m.AvS.SetLifecycle(ctx, id, former)
	if failure.Is(err, failure.NotFound) {
		return nil
	}

	return err //nolint:wrapcheck // names AvS
}

// objects returns the instance's objects in AvS, keyed by kind.
func (m Maintenance) objects(ctx context.Context, by process.Record) (map[string]environment.OutsideObject, error) {
	found, err := m.Objects.ObjectsIn(ctx, by.InstanceID, environment.SystemAvS)
	objects := map[string]environment.OutsideObject{}

	for _, object := range found {
		objects[object.Kind] = object
	}

	return objects, err
}

func kinds() []string {
	return []string{environment.KindInternalEvaluation, environment.KindExternalEvaluation}
}
