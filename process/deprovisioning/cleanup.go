package deprovisioning

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/environment-broker/environment-broker/internal/environment"
	"github.com/environment-broker/environment-broker/internal/upstream/restclient"
	"github.com/environment-broker/environment-broker/process"
)

// cleanupWindow is how long a step retries to remove an object from another system. It is short, because the cluster costs money
// until a later step removes it.
const cleanupWindow = 5 * time.Minute

// Objects records the objects of instances in other systems. SetObject and RemoveObject fail if the operation has lost its lease.
// Errors carry a failure.Kind.
type Objects interface {
	// FindObject returns the recorded object of the instance, or an object with an empty state if none is recorded.
	FindObject(ctx context.Context, instanceID, system, kind string) (environment.OutsideObject, error)
	// ObjectsIn returns the objects of the instance in the system.
	ObjectsIn(ctx context.Context, instanceID, system string) ([]environment.OutsideObject, error)
	SetObject(ctx context.Context, by process.Record, object environment.OutsideObject) error
	RemoveObject(ctx context.Context, by process.Record, object environment.OutsideObject) error
	// Sharing returns the records of other instances that name the same object.
	Sharing(ctx context.Context, object environment.OutsideObject) ([]environment.OutsideObject, error)
}

// cleanup describes a failed removal of an object from another system, and how it is retried.
type cleanup struct {
	objects Objects
	object  environment.OutsideObject
	cause   error
	// interval is the pause before the next attempt, unless the system requests a different pause.
	interval time.Duration
	// off makes retry give up immediately, for example because the system is turned off.
	off bool
}

// retry runs the step again after any error, because a creation that began before the removal may have interfered. After
// cleanupWindow, or immediately if off is set, retry records the object as left over, and the operation continues.
func (c cleanup) retry(ctx context.Context, operation Operation, log logrus.FieldLogger) (Operation, time.Duration, error) {
	window := cleanupWindow
	if c.off {
		window = 0
	}

	given, wait, err := process.RetryOperationWithoutFail(operation, "", c.cause, restclient.RetryAfter(c.cause, c.interval), window)
	if err != nil || wait > 0 {
		return given, wait, err
	}

	c.object.State = environment.OutsideLeftOver
	if err := c.objects.SetObject(ctx, operation.Record, c.object); err != nil {
		return operation, 0, err
	}

	log.WithError(c.cause).WithFields(logrus.Fields{"system": c.object.System, "key": c.object.Key}).
		Warnf("could not remove the %s from %s; it is recorded as left over and may still exist there", c.object.Kind, c.object.System)

	return given, 0, nil
}
